/**
 * Sends the calls that a Node program makes to Airtable's API through a Basetide proxy, without a change to the program:
 *
 *   BASETIDE_PROXY=http://localhost:4000 NODE_OPTIONS="--import=/path/to/basetide-redirect.mjs" node program.js
 *
 * It replaces `fetch` and `https.request` in this process and its children (Node 18.18 or later), and thereby reaches
 * airtable.js, axios, node-fetch and whatever else is built on them. Calls to any other host or path are left alone.
 */
import http from "node:http";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import { urlToHttpOptions } from "node:url";

const HOSTS = ["api.airtable.com", "content.airtable.com"];

const proxy = proxyAddress();
const originalFetch = globalThis.fetch;
const originalRequest = https.request;

globalThis.fetch = function fetch(input, init) {
  const url = parsed(input?.url ?? input);
  if (url?.protocol !== "https:" || !isCall(url.hostname, url.port, url.pathname)) {
    return originalFetch(input, init);
  }
  const target = `${proxy.origin}${prefix(url.hostname)}${url.pathname}${url.search}`;
  return originalFetch(input instanceof Request ? new Request(target, input) : target, init);
};

https.request = function request(...args) {
  const callback = args.findLast((arg) => typeof arg === "function");
  const { host, hostname = host, port, path = "/", headers, ...rest } = optionsOf(args);
  if (!isCall(hostname, port, path)) return originalRequest.apply(https, args);
  // They are for the host that is left out, and an agent for TLS cannot be used without.
  for (const name of ["agent", "protocol", "defaultPort", "servername", "createConnection"])
    delete rest[name];
  const send = proxy.protocol === "https:" ? originalRequest : http.request;
  return send(
    {
      ...rest,
      protocol: proxy.protocol,
      hostname: proxy.hostname.replace(/^\[|\]$/g, ""),
      port: proxy.port,
      path: prefix(hostname) + path,
      headers: withoutHost(headers),
    },
    callback,
  );
};

https.get = function get(...args) {
  const request = https.request(...args);
  request.end();
  return request;
};

// For `import { request } from "node:https"`.
syncBuiltinESMExports();

function proxyAddress() {
  const address = parsed(process.env.BASETIDE_PROXY);
  if (address && /^https?:$/.test(address.protocol)) return address;
  throw new Error(
    "Set BASETIDE_PROXY to the address of the Basetide proxy, for example http://localhost:4000",
  );
}

function isCall(hostname, port, path) {
  return HOSTS.includes(hostname) && (!port || Number(port) === 443) && path.startsWith("/v0/");
}

/** The path at the proxy that stands for the root of a host. */
function prefix(hostname) {
  return `${proxy.pathname.replace(/\/+$/, "")}/${hostname}`;
}

/** The options of a request, in whichever of its forms it was made. */
function optionsOf([first, second]) {
  const url = typeof first === "string" || first instanceof URL ? parsed(first) : undefined;
  if (!url) return { ...first };
  return { ...urlToHttpOptions(url), ...(typeof second === "object" ? second : {}) };
}

/** The header of the program's own that names the host; lists of headers are left as they are. */
function withoutHost(headers) {
  if (!headers || Array.isArray(headers)) return headers;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "host"));
}

function parsed(text) {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}
