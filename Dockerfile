# The app in a container: docs/deploying.md. Two targets: `cpu` (the last, so the default) and `cuda`.
#
#   docker build -t paged-kv .
#   docker build -t paged-kv --build-arg WEIGHTS=embedded .        with the model inside, for a machine without a network
#   docker build -t paged-kv:cuda --target cuda .

FROM python:3.12-slim-bookworm AS app
RUN useradd --create-home --uid 1000 app
WORKDIR /app
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PAGED_KV_CACHE_DIR=/home/app/cache NUMBA_CACHE_DIR=/home/app/numba

FROM app AS cuda
COPY requirements.txt ./
RUN pip install -r requirements.txt
COPY --chown=app . .
USER app
EXPOSE 8501
HEALTHCHECK --interval=10s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"]
CMD ["streamlit", "run", "app.py", "--server.address", "0.0.0.0"]

FROM app AS cpu
# The index with PyTorch's builds without CUDA; a mirror of it can be named here.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY requirements-cpu.txt ./
RUN sed -i "s|^--extra-index-url .*|--extra-index-url ${TORCH_INDEX}|" requirements-cpu.txt \
    && pip install -r requirements-cpu.txt
COPY --chown=app . .
USER app
ARG WEIGHTS=none
RUN if [ "$WEIGHTS" = embedded ]; then \
    python -c "from engine.model.load_report import ignore_progress; \
from engine.model.weights.embedded import embedded_folder; embedded_folder(ignore_progress)"; fi
EXPOSE 8501
HEALTHCHECK --interval=10s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"]
CMD ["streamlit", "run", "app.py", "--server.address", "0.0.0.0"]
