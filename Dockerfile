# For users:   docker build -t nerbert .     then   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" nerbert corpus
# For Beam's workers (the SDK's container with this package, without torch):
#              docker build --target worker -t REGISTRY/nerbert-worker . && docker push REGISTRY/nerbert-worker
FROM python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7 AS build
COPY . /src
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r /src/.github/release.txt \
    && python -m build --no-isolation --wheel --outdir /dist /src && cp /src/constraints.txt /dist/

FROM apache/beam_python3.11_sdk:2.77.0 AS worker
COPY --from=build /dist /dist
RUN pip install --no-cache-dir -c /dist/constraints.txt "$(ls /dist/*.whl)[gcp,s3,http]" && rm -r /dist

FROM python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
COPY --from=build /dist /dist
RUN pip install --no-cache-dir -c /dist/constraints.txt "$(ls /dist/*.whl)[demo,train]" && rm -r /dist
# Any user may run it: files in the mounted folder are those of --user, not of root.
RUN useradd --create-home nerbert && chmod 777 /home/nerbert
ENV HOME=/home/nerbert
USER nerbert
WORKDIR /work
ENTRYPOINT ["nerbert"]
