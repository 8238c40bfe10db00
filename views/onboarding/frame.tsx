/** The frame of the onboarding steps: the current step, and the completed ones. */
import type { ComponentChildren } from "preact";
import type { Draft } from "../../core/control/onboarding";
import { Button, PageHead } from "../components";

/** The steps after sign-up, in order. */
export const steps = [
  { id: "platform", name: "Platform" },
  { id: "key", name: "API key" },
  { id: "base", name: "Base" },
  { id: "destination", name: "Destination" },
  { id: "start", name: "Start" },
] as const;

export type Step = (typeof steps)[number]["id"];

/** The path of a step's page. */
export function stepPath(draft: Pick<Draft, "id"> | null, step: Step): string {
  return draft === null || step === "platform" ? "/new" : `/new/${draft.id}/${step}`;
}

/** The first incomplete step. */
export function currentStep(draft: Draft): Step {
  if (!draft.hasKey) return "key";
  if (!draft.sourceBase) return "base";
  return draft.destination ? "start" : "destination";
}

export function StepFrame(props: {
  /** Null before the first step. */
  draft: Draft | null;
  step: Step;
  title: string;
  lead?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { draft, step, title, lead } = props;
  return (
    <>
      <Steps draft={draft} step={step} />
      <PageHead title={title} lead={lead} />
      {props.children}
    </>
  );
}

function Steps({ draft, step }: { draft: Draft | null; step: Step }) {
  const reached = steps.findIndex(({ id }) => id === (draft ? currentStep(draft) : "platform"));
  const current = steps.findIndex(({ id }) => id === step);
  return (
    <nav aria-label="Steps">
      <ol class="steps">
        {steps.map(({ id, name }, index) => {
          const isDone = index < reached;
          return (
            <li key={id} class={isDone ? "done" : undefined} aria-current={id === step ? "step" : undefined}>
              {index !== current && index <= reached ? <a href={stepPath(draft, id)}>{name}</a> : name}
              {isDone ? <span class="visually-hidden"> (done)</span> : null}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

/** The Continue button, with another text while the answer is pending. */
export function GoOn(props: {
  text: string;
  busy: string;
  /** The page has another primary button. */
  isSecondary?: boolean;
}) {
  return (
    <div class="actions">
      <Button kind={props.isSecondary ? "plain" : "primary"}>{props.text}</Button>
      <span class="htmx-indicator muted" role="status">
        <span class="spinner" aria-hidden="true" /> {props.busy}
      </span>
    </div>
  );
}

/** For a form that htmx sends and replaces; without htmx, the browser does. */
export const enhanced = (action: string) => ({
  method: "post" as const,
  action,
  "hx-post": action,
  "hx-swap": "outerHTML",
  "hx-disable": "find button[type=submit]",
});
