/** An account of the service, accessed by its API token. */

export interface NewBase {
  platform: string;
  api_key: string;
  base_id: string;
  destination?:
    | { kind: "new" }
    | { kind: "existing"; database_id: string; schema: string }
    | { kind: "external"; url: string; schema?: string };
  settings?: Record<string, unknown>;
  workspace_id?: string;
}

/** A base in the management API's answers, as far as attacks need it. */
export interface ApiBase {
  id: string;
  name: string;
  state: string;
  settings: Record<string, unknown>;
  database: { id: string; name: string; host: string; port: number; schema: string };
  sync: { completed_at: string | null };
  budget: { used: { client: number; sync: number }; state: string; spent: boolean } | null;
  error: { code: string } | null;
  repairs: number;
}

export interface ApiAnswer {
  status: number;
  headers: Headers;
  text: string;
}

const TIMEOUT_MS = 40_000;

export class Account {
  constructor(
    readonly id: string,
    readonly name: string,
    readonly email: string,
    readonly password: string,
    readonly token: string,
    readonly consoleUrl: string,
  ) {}

  async api(method: string, path: string, body?: unknown): Promise<ApiAnswer> {
    const response = await fetch(`${this.consoleUrl}/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  /** Returns the answer's JSON. @throws Error for an unsuccessful answer */
  async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { status, text } = await this.api(method, path, body);
    if (status < 200 || status > 299) throw new Error(`${this.name}: ${method} ${path}: ${status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  connect(base: NewBase): Promise<ApiBase> {
    return this.ask("POST", "bases", base);
  }

  base(id: string): Promise<ApiBase> {
    return this.ask("GET", `bases/${id}`);
  }

  change(id: string, settings: Record<string, unknown>): Promise<ApiBase> {
    return this.ask("PATCH", `bases/${id}`, settings);
  }

  async credentials(id: string): Promise<string> {
    return (await this.ask<{ url: string }>("GET", `bases/${id}/credentials`)).url;
  }

  /** Ignores errors: an attack cleans up as well as it can. */
  async disconnect(id: string): Promise<void> {
    await this.api("DELETE", `bases/${id}`).catch(() => undefined);
  }
}
