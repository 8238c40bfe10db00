/** The bodies of requests to an app that parses them itself share the memory of its process. */
import { MB } from "../byte-units";
import { copyServer } from "./answer-time";
import { copyAddress } from "./client-address";
import { clientNetwork } from "./client-network";
import { IncomingBody } from "./incoming-body";
import { SharedBudget } from "./shared-budget";

const BUDGET = { most: 64 * MB, mostPer: { network: 8 * MB } };

export class SharedBodies {
  readonly #budget = new SharedBudget<never>(BUDGET);
  readonly #header: string | undefined;
  #requests = 0;

  /** @param header as `clientAddress` takes it */
  constructor(header: string | undefined) {
    this.#header = header;
  }

  /**
   * Calls `answer` with the request, whose body is received as it is read, and fails with BasetideError
   * `body_too_large`, `body_late` or `busy`.
   *
   * @param mostBytes of one body
   */
  async receive(
    request: Request,
    mostBytes: number,
    answer: (request: Request) => Response | Promise<Response>,
  ): Promise<Response> {
    if (request.body === null) return answer(request);
    // Behind a reverse proxy that does not name the client, each request is a client of its own.
    const network = clientNetwork(request, this.#header, String(this.#requests++));
    const share = this.#budget.open({ network }, { giveWay: () => body.giveWay() });
    using body = new IncomingBody(request, share, { mostBytes });
    const { method, headers, signal } = request;
    const received = new Request(request.url, { method, headers, signal, body: body.stream() });
    copyAddress(request, received);
    copyServer(request, received);
    return await answer(received);
  }
}
