# The app in a container: docs/deploying.md. Two targets: `cpu` (the last, so the default) and `cuda`.
#
#   docker build -t paged-kv .
#   docker build -t paged-kv --build-arg WEIGHTS=embedded .        with the model inside, for a machine without a network
#   docker build -t paged-kv:cuda --target cuda .
#
# `python -m tools.image_root FOLDER` runs these steps where there is no Docker daemon.

FROM debian:bookworm-slim AS system
# libgomp1: without it Numba's loops of two engines take turns (kernels/threads.py).
# The folder of the cache is made here so that a volume on it belongs to the user, too.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 libgomp1 ca-certificates \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
    && useradd --create-home --uid 1000 app \
    && install --directory --owner=app --group=app /home/app/cache
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PAGED_KV_CACHE_DIR=/home/app/cache NUMBA_CACHE_DIR=/home/app/cache/numba
WORKDIR /app
EXPOSE 8501
HEALTHCHECK --interval=10s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=5)"]
CMD ["streamlit", "run", "app.py", "--server.address", "0.0.0.0"]

FROM system AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/venv

FROM build AS cuda-packages
COPY requirements.txt ./
RUN pip install -r requirements.txt

FROM build AS cpu-packages
# The index with PyTorch's builds without CUDA; a mirror of it can be named here.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY requirements-cpu.txt ./
# What the running app never reads is left out: bytecode of modules that are not imported, C++ headers, what two packages
# bring for notebooks, and the packages' own tests. Of torch/bin, torch itself needs torch_shm_manager.
# hadolint ignore=DL3003
RUN sed -i "s|^--extra-index-url .*|--extra-index-url ${TORCH_INDEX}|" requirements-cpu.txt \
    && pip install --no-compile -r requirements-cpu.txt \
    && cd /opt/venv/lib/python3*/site-packages \
    && rm -r torch/test torch/include pyarrow/include pyarrow/tests pandas/tests numba/tests numba/cuda/tests \
    mpmath/tests pydeck/nbextension/static plotly/labextension \
    && find torch/bin -type f ! -name torch_shm_manager -delete \
    && find sympy networkx -type d -name tests -prune -exec rm -r {} +

FROM system AS cuda
COPY --from=cuda-packages /opt/venv /opt/venv
COPY . .
USER 1000

FROM system AS cpu
COPY --from=cpu-packages /opt/venv /opt/venv
COPY . .
# Every lesson is drawn once: its modules are compiled to bytecode now, not at each start by a user who cannot write here.
RUN python -m compileall -q . && NUMBA_CACHE_DIR=/tmp/numba python -m tools.site /tmp/site && rm -r /tmp/site /tmp/numba
USER 1000
ARG WEIGHTS=none
RUN if [ "$WEIGHTS" = embedded ]; then \
    python -c "from engine.model.load_report import ignore_progress; \
from engine.model.weights.embedded import embedded_folder; embedded_folder(ignore_progress)"; fi
