"""What lives as long as the server or a tab: sessions, models, routes, middleware, logs, patches of Streamlit."""
