/**
 * The sidebar of a signed-in user: the switch between bases, the sections of the account, help, and the user's menu.
 *
 * On a narrow screen it is a popover, which the button of the top bar opens without a script.
 */
import type { CurrentUser } from "../../core/control/accounts";
import { Brand } from "../components/brand";
import { Icon, type IconName } from "../components/icon";
import { SearchLink } from "./palette";
import { type NavItem, sections } from "./sections";
import type { Theme } from "./theme";
import { UserMenu } from "./user-menu";

/** The base that a page is about. */
export type CurrentBase = { id: string; name: string; sourceBaseId?: string };

interface SidebarProps {
  currentUser: CurrentUser;
  active: NavItem | undefined;
  base: CurrentBase | undefined;
  theme: Theme;
}

export function Sidebar({ currentUser, active, base, theme }: SidebarProps) {
  return (
    <aside id="sidebar" class="sidebar" popover="auto" aria-label="Sidebar">
      <div class="sidebar-head">
        <Brand />
        <button
          type="button"
          class="button quiet small only-narrow"
          popovertarget="sidebar"
          popovertargetaction="hide"
        >
          <Icon name="close" />
          <span class="visually-hidden">Close the menu</span>
        </button>
      </div>
      <Switcher base={base} />
      <nav aria-label="Main" class="sections">
        <SearchLink isCurrent={active === "search"} />
        {sections.map(({ name, href, text }) => (
          <Section key={name} name={name} href={href} text={text} isCurrent={name === active} />
        ))}
        {currentUser.account.isOperator ? (
          <Section name="operator" href="/operator" text="Operator" isCurrent={active === "operator"} />
        ) : null}
      </nav>
      <div class="sidebar-foot">
        <Help isCurrent={active === "help"} />
        <UserMenu currentUser={currentUser} theme={theme} />
      </div>
    </aside>
  );
}

/** The bar of a narrow screen, with the button that opens the sidebar. */
export function TopBar({ base }: { base: CurrentBase | undefined }) {
  return (
    <header class="top-bar">
      <Brand />
      {base ? (
        <a class="top-bar-base" href={`/bases/${base.id}`}>
          <bdi>{nameOf(base)}</bdi>
        </a>
      ) : null}
      <button type="button" class="button quiet small" popovertarget="sidebar">
        <Icon name="menu" /> Menu
      </button>
    </header>
  );
}

function Section(props: { name: NavItem & IconName; href: string; text: string; isCurrent: boolean }) {
  return (
    <a href={props.href} aria-current={props.isCurrent ? "page" : undefined}>
      <Icon name={props.name} />
      {props.text}
    </a>
  );
}

/** A link to all bases; the console's script opens a search over them instead. */
function Switcher({ base }: { base: CurrentBase | undefined }) {
  return (
    <a class="switcher" href="/bases" data-palette="base">
      <span class="switcher-name">
        <span class="visually-hidden">Switch base, now </span>
        {base ? <bdi>{nameOf(base)}</bdi> : "All bases"}
      </span>
      <Icon name="choose" />
    </a>
  );
}

function Help({ isCurrent }: { isCurrent: boolean }) {
  return (
    <details class="menu up">
      <summary aria-current={isCurrent ? "true" : undefined}>
        <Icon name="help" />
        Help
      </summary>
      <div class="menu-items">
        <a href="/docs">Docs</a>
        <a href="/docs/api">API reference</a>
        <a href="/requests">Requests to the operator</a>
        <button type="button" class="needs-script" data-shortcuts>
          Keyboard shortcuts
        </button>
      </div>
    </details>
  );
}

function nameOf(base: CurrentBase): string {
  return base.name || base.sourceBaseId || base.id;
}
