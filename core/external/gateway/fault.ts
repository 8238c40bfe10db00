/** The errors that end a connection to a customer's server. */
import { errorResponse, GATEWAY_SEVERITY, VIOLATION_STATE, type ViolationKind } from "../messages";

/** The server cannot be reached or refuses us. `code` is an SQLSTATE, or a code of the operating system or TLS. */
export class GatewayRefusal extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** The server did something that no Postgres server does. */
export class Violation extends Error {
  readonly kind: ViolationKind;

  constructor(kind: ViolationKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Returns the error as an ErrorResponse for the driver behind the gateway. */
export function faultMessage(fault: unknown, host: string): Buffer {
  const [code, text] =
    fault instanceof Violation
      ? [VIOLATION_STATE, `the server at ${host} does not speak the Postgres protocol: ${fault.message}`]
      : [
          String((fault as { code?: unknown }).code ?? "08006"),
          fault instanceof Error ? fault.message : String(fault),
        ];
  return errorResponse([
    ["S", "FATAL"],
    ["V", GATEWAY_SEVERITY],
    ["C", code],
    ["M", text],
  ]);
}
