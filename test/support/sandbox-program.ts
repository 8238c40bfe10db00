/**
 * The sandbox of a test or a bench. It ends when the process that started it does, even if that one is killed: left
 * running with real-time priority, it would slow down whatever runs next.
 */
import { dieWithParent } from "../../core/die-with-parent";

dieWithParent();
await import("../../apps/sandbox/main");
