/**
 * Rules of an agent: updates that its proposals make without a person. There are none until an owner makes one.
 *
 * A rule names fields of one table and a number an hour. `change-sets/approval-rules.ts` applies them.
 */
import type { Actor, Context } from "../../context";
import { invalid, notFound } from "../../errors";
import { newId } from "../../ids";
import type { TableSpec } from "../../replica";
import { recordChange } from "../audit";
import { getBase, replicaShape } from "../bases";
import { COMPUTED_TYPES } from "../change-sets";
import { type Agent, findTable, getAgent } from "./agents";
import { readableIn } from "./reads";

export interface AgentRule {
  id: string;
  baseId: string;
  /** The source's id. */
  tableId: string;
  /** The source's ids. */
  fields: string[];
  updatesPerHour: number;
  /** E-mail address of the owner, or name of the token, who allows it. */
  createdBy: string;
}

/** A rule as people write it: tables and fields by their SQL name, the source's name or id. */
export interface AskedRule {
  baseId: string;
  table: string;
  fields: string[];
  updatesPerHour: number;
}

const MOST_RULES = 20;

/**
 * Replaces the rules of an agent. Those that stay keep who made them.
 *
 * @throws BasetideError `invalid_request`, `not_found` for a base that the agent may not read
 */
export async function setAgentRules(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log"> & { actor: Actor },
  agent: Agent,
  asked: AskedRule[],
): Promise<Agent> {
  if (asked.length > MOST_RULES) throw invalid(`An agent has at most ${MOST_RULES} rules`);
  const rules: Omit<AgentRule, "id">[] = [];
  for (const one of asked) {
    const rule = await resolveRule(ctx, agent, one);
    if (rules.some(({ baseId, tableId }) => baseId === rule.baseId && tableId === rule.tableId))
      throw invalid(`The table ${one.table} has two rules: name all fields in one`);
    rules.push(rule);
  }
  const { id, accountId, name } = agent;
  await ctx.db.begin(async (tx) => {
    // A proposal that a rule approves holds this row.
    await tx`select from agents where id = ${id} for no key update`;
    await tx`delete from agent_rules where agent_id = ${id}`;
    for (const rule of rules) {
      await tx`
        insert into agent_rules (id, agent_id, base_id, table_id, fields, updates_per_hour, created_by)
        values (${newId("agent_rule")}, ${id}, ${rule.baseId}, ${rule.tableId}, ${rule.fields},
          ${rule.updatesPerHour}, ${rule.createdBy})`;
    }
    const told = rules.map(
      ({ baseId, tableId, fields, updatesPerHour }) =>
        `${fields.join(", ")} of ${tableId} in ${baseId}: ${updatesPerHour} an hour`,
    );
    const details = { name, rules: told.join("; ") || "none" };
    await recordChange(tx, ctx.actor, { accountId, action: "agent.rules_changed", subject: id, details });
  });
  return getAgent(ctx.db, accountId, id);
}

async function resolveRule(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log"> & { actor: Actor },
  agent: Agent,
  { baseId, table: named, fields, updatesPerHour }: AskedRule,
): Promise<Omit<AgentRule, "id">> {
  const kept = agent.rules.find(
    (rule) =>
      rule.baseId === baseId &&
      rule.tableId === named &&
      rule.updatesPerHour === updatesPerHour &&
      rule.fields.join() === fields.join(),
  );
  if (kept) return kept;
  const reads = agent.bases.find((one) => one.baseId === baseId);
  if (!reads) throw notFound("The agent may not read this base");
  const base = await getBase(ctx.db, baseId, agent.accountId);
  const { tables } = readableIn(reads, await replicaShape(ctx, base));
  const table = findTable(tables, named);
  return {
    baseId,
    tableId: table.tableId,
    fields: [...new Set(fields.map((name) => findWritable(table, name)))],
    updatesPerHour,
    createdBy: ctx.actor.name,
  };
}

/** A link to a file is fetched by the source: with data in it, it would be a way out that no person has seen. */
function findWritable({ name: table, columns }: TableSpec, asked: string): string {
  const found = columns.find(
    ({ name, sourceName, fieldId, filesOf }) =>
      filesOf === undefined && [name, sourceName, fieldId].includes(asked),
  );
  if (!found) throw invalid(`${table} has no field ${asked} that the agent may read`);
  if (found.type === "attachment" || found.type === "hashed" || COMPUTED_TYPES.has(found.sourceType))
    throw invalid(`A rule cannot allow to change ${found.name}`);
  return found.fieldId;
}
