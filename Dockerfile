# One image for every role: docker run basetide worker | proxy | console | operator …
# It needs no write access to its file system and no root: docker run --read-only --tmpfs /tmp basetide worker
FROM oven/bun:1.4.5-slim AS dependencies
WORKDIR /app
COPY package.json bun.lock bunfig.toml ./
COPY patches patches
# The embedded Postgres is for `bun run up` only, and what peers name is for tests.
RUN bun install --frozen-lockfile --production --omit=optional --omit=peer --ignore-scripts

FROM oven/bun:1.4.5-slim
WORKDIR /app
ENV NODE_ENV=production
COPY --from=dependencies /app/node_modules node_modules
COPY package.json tsconfig.json LICENSE ./
COPY apps apps
COPY core core
COPY sql sql
COPY views views
USER bun
EXPOSE 3000 4000 4200
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["bun", "apps/main.ts", "healthy"]
ENTRYPOINT ["bun", "apps/main.ts"]
CMD ["worker"]
