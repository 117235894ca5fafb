# The image of Syncline: compiled code, its dependencies and Node, nothing else. No shell, no package manager, no root.
#
#   docker build -t syncline .
#   docker run --read-only -v ./config:/etc/syncline:ro -e REDIS_URL=redis://redis:6379 syncline serve --config /etc/syncline
#
# NODE_IMAGE may be any image with Node 24 on Debian; pin it by digest where images are reproducible. With the same NODE_IMAGE and
# SOURCE_DATE_EPOCH every file has the same bytes; for the same times too: --output type=image,rewrite-timestamp=true.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# Install scripts are not run: nothing in the tree needs one.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
# Only the types: the image has no Redis for `syncline dev`.
COPY scripts/redis.d.mts scripts/
RUN npm run -s build -- --sourceMap false --declaration false

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY scripts/prune-modules.mjs scripts/sbom.mjs scripts/
ARG SOURCE_DATE_EPOCH=0
# The bill of materials is of what is installed here and nowhere else (`--omit` would leave out what is needed for both). Then goes what is never loaded at run time: types, sources, maps,
# pages, tests, builds for browsers.
RUN npm ci --omit=dev --omit=optional --ignore-scripts \
 && npm pkg delete devDependencies && npm sbom --sbom-format=cyclonedx > npm-sbom.json \
 && node scripts/sbom.mjs < npm-sbom.json > sbom.cdx.json \
 && node scripts/prune-modules.mjs node_modules

# What Node needs to run: itself, the libraries it is linked to, certificates of public authorities, a user and a place for files.
FROM ${NODE_IMAGE} AS runtime
RUN set -eu; root=/runtime; node=$(readlink -f "$(command -v node)"); \
    for file in "$node" $(ldd "$node" | grep -o '/[^ ]*' | sort -u) /etc/ssl/certs/ca-certificates.crt; do \
      [ -e "$file" ] || continue; mkdir -p "$root$(dirname "$file")"; cp -L "$file" "$root$file"; \
    done; \
    mkdir -p "$root/tmp" "$root/etc" "$root/usr/bin"; chmod 1777 "$root/tmp"; \
    ln -s "$node" "$root/usr/bin/node"; \
    printf '#!/usr/bin/node\nimport("/app/dist/main.js");\n' > "$root/usr/bin/syncline"; chmod 755 "$root/usr/bin/syncline"; \
    echo 'syncline:x:10001:10001:syncline:/tmp:/nonexistent' > "$root/etc/passwd"; \
    echo 'syncline:x:10001:' > "$root/etc/group"; \
    echo 'hosts: files dns' > "$root/etc/nsswitch.conf"

# `docker build --target sbom --output .` writes the bill of materials beside the image.
FROM scratch AS sbom
COPY --from=dependencies /app/sbom.cdx.json /

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Syncline" \
      org.opencontainers.image.description="Starts and watches sync jobs on a schedule, and says once and truthfully what happened to each." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=runtime /runtime /
COPY --from=dependencies /app/node_modules /app/node_modules
COPY --from=build /build/dist /app/dist
COPY --from=dependencies /app/sbom.cdx.json /app/package.json /app/
COPY config /app/config
COPY LICENSE policies.schema.json /app/
WORKDIR /app
# A small young generation: half the memory over idle while a long list is read (docs/dev/benchmarks.md).
ENV PATH=/usr/bin NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=4
USER 10001:10001
# Exec form: node is PID 1 and gets SIGTERM itself.
ENTRYPOINT ["/usr/bin/node", "/app/dist/main.js"]
CMD ["--help"]
