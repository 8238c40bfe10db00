/** All attacks in the order of a run: those from which a broken service recovers slowest come last. */
import type { Attack } from "../attack";
import { apiTokens } from "./api-tokens";
import { attemptsGrowth } from "./attempts-growth";
import { auditGaps } from "./audit-gaps";
import { bodies } from "./bodies";
import { defaults } from "./defaults";
import { exhaustServer, exhaustWithoutFirewall } from "./exhaust-server";
import { foreignForms } from "./foreign-forms";
import { foreignIds } from "./foreign-ids";
import { forgedLinks } from "./forged-links";
import { forgedReads } from "./forged-reads";
import { halfBodies } from "./half-bodies";
import { halfSent } from "./half-sent";
import { hostilePostgres } from "./hostile-postgres";
import { hostileTexts } from "./hostile-texts";
import { hostileTls } from "./hostile-tls";
import { hosts } from "./hosts";
import { keylessOracle } from "./keyless-oracle";
import { lockout } from "./lockout";
import { mailBomb } from "./mail-bomb";
import { newKeys } from "./new-keys";
import { openPages } from "./open-pages";
import { paths } from "./paths";
import { poison429 } from "./poison-429";
import { preflights } from "./preflights";
import { refusedKey } from "./refused-key";
import { removedMember } from "./removed-member";
import { revoked } from "./revoked";
import { revokedSqlUser } from "./revoked-sql-user";
import { secondRole } from "./second-role";
import { seenCode } from "./seen-code";
import { signInQueue } from "./sign-in-queue";
import { slowAnswers } from "./slow-answers";
import { slowNeighbor } from "./slow-neighbor";
import { slowReaders } from "./slow-readers";
import { smuggling } from "./smuggling";
import { sqlEscape } from "./sql-escape";
import { sqlRace } from "./sql-race";
import { sqlUserUp } from "./sql-user-up";
import { starve } from "./starve";
import { storedToken } from "./stored-token";
import { terminal } from "./terminal";
import { tunnels } from "./tunnels";
import { viewerChanges } from "./viewer-changes";
import { viewerSql } from "./viewer-sql";

export const attacks: Attack[] = [
  paths,
  hosts,
  smuggling,
  foreignIds,
  keylessOracle,
  revoked,
  viewerChanges,
  storedToken,
  seenCode,
  refusedKey,
  hostileTexts,
  forgedReads,
  slowNeighbor,
  auditGaps,
  removedMember,
  defaults,
  terminal,
  lockout,
  mailBomb,
  attemptsGrowth,
  apiTokens,
  signInQueue,
  foreignForms,
  forgedLinks,
  openPages,
  preflights,
  tunnels,
  slowReaders,
  slowAnswers,
  halfSent,
  halfBodies,
  bodies,
  sqlEscape,
  sqlUserUp,
  revokedSqlUser,
  viewerSql,
  secondRole,
  sqlRace,
  exhaustServer,
  starve,
  newKeys,
  poison429,
  hostilePostgres,
  hostileTls,
];

/** Only in the long form: measured and not promised. */
export const unpromised: Attack[] = [exhaustWithoutFirewall];
