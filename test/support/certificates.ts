/** Certificates for tests of TLS: an authority of one's own, and servers that it vouches for. */
export { type Authority, createAuthority } from "../../core/http";
