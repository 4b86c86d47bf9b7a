# The service and the command line in one image. What is kept lies in /data, as do large temporary files; /tmp holds
# caches that may go. It writes nowhere else, so it runs with a read-only root.
FROM python:3.11-slim@sha256:45037981b62b34b44602584fccbc4d884d5f7dc92c7ee86bb38a698a79fe1e51 AS build
WORKDIR /src
RUN python -m venv /opt/torchtriage
ENV PATH=/opt/torchtriage/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements-image.lock ./
RUN pip install --require-hashes --only-binary :all: -r requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY app app
COPY docs docs
COPY knowledge_base knowledge_base
COPY migrations migrations
RUN pip install --no-deps --no-build-isolation .

FROM python:3.11-slim@sha256:45037981b62b34b44602584fccbc4d884d5f7dc92c7ee86bb38a698a79fe1e51
RUN useradd --uid 10001 --create-home torchtriage && install -d -o torchtriage -g torchtriage /data
COPY --from=build /opt/torchtriage /opt/torchtriage
ENV PATH=/opt/torchtriage/bin:$PATH PYTHONDONTWRITEBYTECODE=1 TRIAGE_DATA_DIR=/data TMPDIR=/data XDG_CACHE_HOME=/tmp/cache
# By number, so that an orchestrator sees that it is not root.
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ.get('TRIAGE_PORT', '8000')}/healthz\", timeout=2)"]
CMD ["torchtriage", "serve"]
