/** The sandbox of a test or a bench. It ends with it, even if that is killed: it may have real-time priority. */
import { dieWithParent } from "../../core/die-with-parent";

dieWithParent();
await import("../../apps/sandbox/main");
