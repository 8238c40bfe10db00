/** Certificates for TLS tests: an authority, and servers that it certifies. */
export { type Authority, createAuthority } from "../../core/http";
