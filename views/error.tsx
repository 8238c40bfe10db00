/** The error page. */
import { ButtonLink, ErrorNote, PageHead } from "./components";

/** @param props.requestId for internal errors: the id to report to the service's operator */
export function ErrorView(props: { title: string; message: string; requestId: string | undefined }) {
  return (
    <>
      <PageHead title={props.title} />
      <ErrorNote>
        <p>{props.message}</p>
        {props.requestId ? (
          <p class="small">
            Request <code>{props.requestId}</code>
          </p>
        ) : null}
      </ErrorNote>
      <ButtonLink href="/">Go to your bases</ButtonLink>
    </>
  );
}
