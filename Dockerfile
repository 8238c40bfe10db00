# One image for every role: docker run basetide apps/worker/main.ts
FROM oven/bun:1.4.5-slim AS dependencies
WORKDIR /app
COPY package.json bun.lock bunfig.toml ./
RUN bun install --frozen-lockfile --production --ignore-scripts

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
ENTRYPOINT ["bun"]
CMD ["apps/worker/main.ts"]
