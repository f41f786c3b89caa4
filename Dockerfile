# One stage builds a virtual environment, and another copies it, so the image contains neither pip nor
# a compiler. BASE can be any Debian image. It doesn't need Python.
ARG BASE=debian:12-slim

FROM ${BASE} AS base
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 tzdata \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/*

FROM base AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv
WORKDIR /build
RUN python3 -m venv /opt/gatehouse
# Install the locked dependencies first, because they change less often than the code.
COPY requirements.txt requirements-build.txt ./
RUN /opt/gatehouse/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
COPY handlers handlers
COPY sandbox sandbox
RUN /opt/gatehouse/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt \
    && /opt/gatehouse/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/gatehouse/bin/pip uninstall --yes setuptools \
    && /opt/gatehouse/bin/pip uninstall --yes pip \
    && /opt/gatehouse/bin/python3 -m compileall -q /opt/gatehouse/lib

FROM base
COPY --from=build /opt/gatehouse /opt/gatehouse
# The bot writes only to this folder. It contains the default SQLite database, gatehouse.db.
RUN install -d -o 65532 -g 65532 -m 0700 /data
USER 65532:65532
WORKDIR /data
VOLUME /data
# Slack's library needs a home folder. A published port reaches the bot and the sandbox only on all
# addresses. The environment wins over a settings file, so the health check knows host and port.
ENV HOME=/data \
    HOST=0.0.0.0 \
    PORT=3000 \
    PATH=/opt/gatehouse/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SANDBOX_HOST=0.0.0.0
EXPOSE 3000
STOPSIGNAL SIGTERM
# The check also works if HOST is 0.0.0.0, :: or *, because all of them reach this machine.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python3", "-c", "import http.client as h, os; c = h.HTTPConnection(os.environ['HOST'].replace('*', 'localhost'), int(os.environ['PORT']), timeout=4); c.request('GET', '/healthz'); exit(c.getresponse().status != 200)"]
ENTRYPOINT ["gatehouse"]
