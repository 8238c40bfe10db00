/** Sockets that notice a dead peer, TLS, and which addresses may be connected to. */
export { type AddressKind, checkHost, kindOfAddress, kindOfHost, whyRefused } from "./address-guard";
export { guardedRequest } from "./guarded-request";
export { liveSocket } from "./live-socket";
export { offersTls, SSL_REQUEST, TLS_OFFERED, TLS_REFUSED, tlsOptions } from "./tls";
