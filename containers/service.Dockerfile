# The service without Megatron: it hands checks over and judges their results.
FROM python:3.12-slim
COPY pyproject.toml README.md constraints.txt /build/
COPY validator /build/validator
RUN pip install --no-cache-dir -c /build/constraints.txt "/build[service,postgresql]" \
    && rm -r /build \
    && apt-get update \
    && apt-get install -y --no-install-recommends git=1:2.* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 validator \
    && install -d -o validator /data \
    && git config --system --add safe.directory /project
USER 10001
ENTRYPOINT ["validator", "serve"]
