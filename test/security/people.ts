/** People who sign up during an attack, each with an account of their own. */
import type { Random } from "../../apps/sandbox/random";
import type { ConsoleClient } from "../support/console-client";
import { Account } from "./account";
import { randomAddress, type Service } from "./service";

export const PASSWORD = "correct horse battery";

export async function person(service: Service, random: Random): Promise<Account> {
  const email = `person${random.int(1, 1e9)}-${crypto.randomUUID().slice(0, 8)}@example.org`;
  const words = ["account", "create", "--email", email, "--password", PASSWORD, "--json"];
  const { id, token } = JSON.parse(await service.operator(...words)) as { id: string; token: string };
  return new Account(id, "person", email, PASSWORD, token, service.consoleUrl);
}

export async function signIn(
  service: Service,
  { email, password }: Account,
  random: Random,
): Promise<ConsoleClient> {
  const browser = service.browser(randomAddress(random));
  await browser.post("/sign-in", { email, password, next: "/bases" });
  return browser;
}
