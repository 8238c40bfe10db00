/** The search of the documentation: a form, answered with a page. */

export function SearchForm(props: { query: string; isInBar?: boolean; autofocus?: boolean }) {
  const { query, isInBar, autofocus } = props;
  return (
    <search class={isInBar ? "site-search in-bar" : "site-search"}>
      <form method="get" action="/docs/search">
        <input
          type="search"
          name="q"
          value={query}
          placeholder="Search the docs"
          aria-label="Search the docs"
          maxLength={200}
          autocomplete="off"
          autofocus={autofocus}
        />
        <button type="submit" aria-label="Search">
          <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
            <path d="M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9ZM10.300 10.300 14 14" />
          </svg>
        </button>
      </form>
    </search>
  );
}
