# For users:   docker build -t nerbert .     then   docker run --rm -v "$PWD:/work" nerbert corpus
# For Beam's workers (the SDK's container with this package, without torch):
#              docker build --target worker -t REGISTRY/nerbert-worker . && docker push REGISTRY/nerbert-worker
FROM python:3.11-slim AS build
COPY . /src
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /dist /src && cp /src/constraints.txt /dist/

FROM apache/beam_python3.11_sdk:2.77.0 AS worker
COPY --from=build /dist /dist
RUN pip install --no-cache-dir -c /dist/constraints.txt "$(ls /dist/*.whl)[gcp,s3,http]" && rm -r /dist

FROM python:3.11-slim
COPY --from=build /dist /dist
RUN pip install --no-cache-dir -c /dist/constraints.txt "$(ls /dist/*.whl)[demo,train]" && rm -r /dist
WORKDIR /work
ENTRYPOINT ["nerbert"]
