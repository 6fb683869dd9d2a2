# The server in a container: memories in the volume /data, or in PostgreSQL (compose.yaml). See docs/howto/containers.md.
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml requirements-dev.lock README.md LICENSE NOTICE ./
COPY src src
# The lock pins what is installed; of the packages it names only those that scrubjay needs come along.
RUN python -m venv /opt/scrubjay \
    && /opt/scrubjay/bin/pip install --no-cache-dir --constraint requirements-dev.lock ".[postgres]"

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /data scrubjay \
    && install --directory --owner=scrubjay --group=scrubjay /data
COPY --from=build /opt/scrubjay /opt/scrubjay
ENV PATH=/opt/scrubjay/bin:$PATH \
    SCRUBJAY_HOME=/data \
    SCRUBJAY_MODELS=/data/models \
    SCRUBJAY_HOST=0.0.0.0 \
    SCRUBJAY_PORT=8377
USER 10001
VOLUME /data
EXPOSE 8377
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['SCRUBJAY_PORT'] + '/readyz', timeout=4)"]
ENTRYPOINT ["scrubjay"]
CMD ["serve"]
