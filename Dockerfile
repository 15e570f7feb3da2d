# JupyterLab with jupyter_dist and torch, and a group of two ranks.
#   docker build -t jupyter-dist .
#   docker run --rm -p 8888:8888 --shm-size=1g jupyter-dist
# For NVIDIA GPUs add `--gpus all`, and `--build-arg TORCH=torch` for a CUDA build of torch.
ARG PYTHON=3.12

FROM node:22-bookworm-slim AS node

FROM python:${PYTHON}-slim-bookworm AS build
COPY --from=node /usr/local /usr/local/node
ENV PATH=/usr/local/node/bin:$PATH
RUN pip install --no-cache-dir build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN python -m build --wheel --outdir /dist

FROM python:${PYTHON}-slim-bookworm
ARG TORCH=torch==2.13.0
# An index with torch's builds for the CPU, for torch alone: pip would take any package from a second index. Without one
# pip takes the CUDA build.
ARG TORCH_INDEX=
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "${TORCH_INDEX}"} "${TORCH}" \
    && pip install --no-cache-dir "jupyterlab>=4.6.3,<5" matplotlib scikit-learn
COPY --from=build /dist/*.whl /tmp/
RUN pip install --no-cache-dir /tmp/*.whl && rm /tmp/*.whl && useradd --create-home ranks
COPY binder/start binder/first_group.py /usr/local/bin/
COPY --chown=ranks examples /home/ranks/examples
USER ranks
WORKDIR /home/ranks
EXPOSE 8888
# The server asks for a token; it is in what it prints.
CMD ["start", "jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "examples/ddp_digits.ipynb"]
