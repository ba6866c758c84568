# The service without PyTorch: `docker compose up`, or `docker build -t skipbo . && docker run -p 8000:8000 skipbo`.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml setup.py constraints.txt README.md LICENSE NOTICE ./
COPY skipbo_env skipbo_env
COPY training training
COPY serve serve
COPY models models
RUN python -m venv /opt/skipbo \
  && /opt/skipbo/bin/pip install --no-cache-dir -c constraints.txt '.[serve,postgres]'

FROM python:3.11-slim-bookworm
# The engine is compiled for the machine at the first start; the folder keeps that for the next ones.
RUN useradd --system --uid 10001 --user-group --no-create-home skipbo \
  && install --directory --owner skipbo --group skipbo --mode 700 /var/lib/skipbo /var/cache/skipbo
COPY --from=build /opt/skipbo /opt/skipbo
ENV PATH=/opt/skipbo/bin:$PATH \
  PYTHONUNBUFFERED=1 \
  SKIPBO_HOST=0.0.0.0 \
  SKIPBO_WORKERS=2 \
  SKIPBO_LOG=1 \
  SKIPBO_CACHE_DIR=/var/cache/skipbo \
  SKIPBO_DATABASE_URL=sqlite:////var/lib/skipbo/games.db
USER 10001:10001
VOLUME ["/var/lib/skipbo", "/var/cache/skipbo"]
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
CMD ["skipbo", "serve"]
