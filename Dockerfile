# An image for Beam's workers: the SDK's container with this package, without torch.
# docker build -t REGISTRY/nerbert-worker . && docker push REGISTRY/nerbert-worker
FROM python:3.11-slim AS build
COPY . /src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /dist /src

FROM apache/beam_python3.11_sdk:2.77.0
COPY --from=build /dist /dist
COPY constraints.txt /dist/
RUN pip install --no-cache-dir -c /dist/constraints.txt "$(ls /dist/*.whl)[gcp,s3,http]" && rm -r /dist
