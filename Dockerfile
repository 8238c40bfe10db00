# One image for every role: docker run basetide all | worker | proxy | console | operator …
# It needs no write access to its file system and no root: docker run --read-only --tmpfs /tmp basetide worker
#
# Base images are pinned by digest. Bun comes from the npm registry, as on a developer's machine: in the version of
# package.json, and npm verifies the package's hash.
FROM node:24.20.0-bookworm-slim@sha256:ba849c60be29959425b8734d57b8b4b7d56f98edd9504c9af091d5281095a71e AS service
WORKDIR /sources
COPY package.json bun.lock bunfig.toml ./
COPY patches patches
RUN npm install --global --no-audit --no-fund --allow-scripts=bun bun@1.4.5 \
  && cp "$(readlink -f "$(command -v bun)")" /usr/local/bin/bun-binary \
  # The embedded Postgres is for `bun run up` only, and peer dependencies are for tests.
  && bun install --frozen-lockfile --production --omit=optional --omit=peer --ignore-scripts
COPY tsconfig.json LICENSE README.md CONTRIBUTING.md CHANGELOG.md ./
COPY apps apps
COPY core core
# The console serves the documentation.
COPY docs docs
COPY findings/README.md findings/README.md
COPY sql sql
COPY views views
RUN bun apps/bundle.ts /app

FROM debian:12.15-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171
RUN useradd --uid 1000 --user-group --no-create-home --shell /usr/sbin/nologin bun
WORKDIR /app
ENV NODE_ENV=production
# See docs/configuration.md, "Memory of the runtime".
ENV MIMALLOC_PURGE_HOLES_MIN_INTERVAL=10000 MIMALLOC_PURGE_DELAY=0 BUN_GC_TIMER_INTERVAL=4000
COPY --from=service /usr/local/bin/bun-binary /usr/local/bin/bun
COPY --from=service /app .
USER bun
EXPOSE 3000 4000 4200
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["bun", "apps/main.ts", "healthy"]
ENTRYPOINT ["bun", "apps/main.ts"]
CMD ["all"]
