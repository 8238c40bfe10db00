/** The logo and the name, which lead home. */
export function Brand() {
  return (
    <a class="brand" href="/" aria-label="Basetide, home">
      <svg viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false">
        <rect class="brand-ground" width="24" height="24" rx="6" />
        <path
          class="brand-wave"
          d="M4 10c3 0 3-2.5 5.3-2.5S12 10 14.7 10s2.700-2.500 5.300-2.500M4 16c3 0 3-2.500 5.300-2.500S12 16 14.700 16s2.700-2.500 5.300-2.500"
        />
      </svg>
      <span class="brand-name">Basetide</span>
    </a>
  );
}
