import streamlit as st

st.title("PagedAttention, live")
