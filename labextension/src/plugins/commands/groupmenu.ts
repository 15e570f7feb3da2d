/** The menu of a group's card: what can be done with the group, apart from interrupt and restart. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import { isGone } from '../../model/groups/groups';
import { isAway, isStarting } from '../../model/format/states';
import type { IGroup } from '../../services/protocol';
import { CommandIDs } from '../../tokens';

/** An entry: a command that is run with `{group: id}`. */
export interface IGroupMenuItem {
  readonly command: string;
  /** Whether the menu has it for a group; it has, where this is left out. */
  isVisible?(group: IGroup): boolean;
  /** Whether it can be chosen, besides that its command is enabled. */
  isEnabled?(group: IGroup): boolean;
  /** Its text; its command has one, too. */
  label?(group: IGroup, trans: TranslationBundle): string;
}

/** Its agent answers, and its ranks are not about to end. */
export function isReachable({ state }: IGroup): boolean {
  return !['dead', 'lost', 'unresponsive', 'incompatible', 'ending'].includes(state);
}

/** Its agent answers, and its ranks have started. */
export function hasStarted(group: IGroup): boolean {
  return isReachable(group) && !isStarting(group);
}

/** The panel of a group, as an entry. */
export interface IPanelItem {
  readonly command: string;
  /** Its place. */
  readonly rank: number;
  /** Its name in the picker, which has room for a few; left out: it is in the menu alone. */
  readonly brief?: string;
}

const panels: IPanelItem[] = [];

/** Add a panel to the menu; plugins add theirs. */
export function addPanelItem(item: IPanelItem): void {
  panels.push(item);
  panels.sort((a, b) => a.rank - b.rank);
}

/** Return the panels that were added, by their places. */
export function panelItems(): readonly IPanelItem[] {
  return panels;
}

/** What may be left to do after ranks were replaced, or a group has ended: in the menu, and as a button in the group's card. */
export interface IRepair extends IGroupMenuItem {
  /** Its name on the button. */
  readonly brief: string | ((group: IGroup) => string);
  /** The caption of the button; its command has one, too. */
  title?(group: IGroup): string;
  /** More arguments of its command, beside the group. */
  args?(group: IGroup): Readonly<Record<string, number | string>>;
  /** Whether the button is there without a note, and beside the button that replaces dead ranks. */
  readonly standsAlone?: boolean;
  isEnabled(group: IGroup): boolean;
}

const repairs: IRepair[] = [];

/** Add a repair; plugins add theirs. */
export function addRepair(repair: IRepair): void {
  repairs.push(repair);
}

/** Return the repairs that a group may need now. */
export function repairsOf(group: IGroup): readonly IRepair[] {
  return repairs.filter(({ isEnabled }) => isEnabled(group));
}

/** An entry of a section to which plugins add theirs. */
export interface IPlacedItem extends IGroupMenuItem {
  /** Its place. */
  readonly rank: number;
  /** Its name in the picker, which has room for a few; left out: it is in the menu alone. */
  readonly brief?: string;
}

const stateItems: IPlacedItem[] = [];

const cellItems: IPlacedItem[] = [];
const memoryItems: IPlacedItem[] = [
  {
    command: CommandIDs.emptyCache,
    rank: 30,
    isVisible: group => group.accelerator !== 'cpu',
    isEnabled: group => hasStarted(group) && !isAway(group)
  }
];

/** Add to the menu what keeps or changes the variables of a group. */
export function addStateItem(item: IPlacedItem): void {
  addTo(stateItems, item);
}

/** Add to the menu what gives memory back. */
export function addMemoryItem(item: IPlacedItem): void {
  addTo(memoryItems, item);
}

/** Add to the menu what is done with the cells that ran on a group. */
export function addCellItem(item: IPlacedItem): void {
  addTo(cellItems, item);
}

/** Return what was added, by their places. */
export function stateItemsInOrder(): readonly IPlacedItem[] {
  return stateItems;
}

function addTo(items: IPlacedItem[], item: IPlacedItem): void {
  items.push(item);
  items.sort((a, b) => a.rank - b.rank);
}

function withGroup({ command }: IPanelItem): IGroupMenuItem {
  return { command, isEnabled: isReachable };
}

/** The menu below its panels, in sections with a line between them. A feature adds its commands here. */
const GROUP_MENU: readonly (readonly IGroupMenuItem[])[] = [
  [{ command: CommandIDs.openLog }, { command: CommandIDs.openConsole, isEnabled: isReachable }],
  [
    { command: CommandIDs.replace, isEnabled: group => isReachable(group) && group.ranks.some(isLost) },
    { command: CommandIDs.reform, isEnabled: group => group.state === 'ready' }
  ],
  stateItems,
  memoryItems,
  cellItems,
  [
    {
      command: CommandIDs.shutdown,
      isEnabled: group => group.state !== 'ending',
      label: (group, trans) =>
        isGone(group) ? trans.__('Remove %1', group.name) : trans.__('Shut Down %1\u2026', group.name)
    }
  ]
];

/** A dead rank, or one whose device is lost: another process takes its place. */
function isLost({ state, process_group }: IGroup['ranks'][number]): boolean {
  return state === 'dead' || process_group === 'lost';
}

/** Open the menu of a group below its button; the button has the focus again when the menu closes. */
export function openGroupMenu(
  app: JupyterFrontEnd,
  group: IGroup,
  button: HTMLElement,
  trans: TranslationBundle
): void {
  const commands = new CommandRegistry();
  const menu = new Menu({ commands });
  menu.addClass('jpd-GroupMenu');
  menu.title.label = trans.__('Actions on %1', group.name);
  menu.contentNode.setAttribute('aria-label', menu.title.label);
  const args = { group: group.id };
  const isThere = ({ command, isVisible }: IGroupMenuItem): boolean =>
    app.commands.hasCommand(command) && isVisible?.(group) !== false;
  const [first, repair, ...others] = GROUP_MENU;
  for (const section of [[...panels.map(withGroup), ...first], [...repair, ...repairs], ...others]) {
    for (const item of section.filter(isThere)) {
      commands.addCommand(item.command, {
        label: () => item.label?.(group, trans) ?? app.commands.label(item.command, args),
        caption: () => app.commands.caption(item.command, args),
        isEnabled: () => app.commands.isEnabled(item.command, args) && item.isEnabled?.(group) !== false,
        describedBy: { args: { type: 'object', properties: {} } },
        execute: () => app.commands.execute(item.command, args)
      });
      menu.addItem({ command: item.command });
    }
    menu.addItem({ type: 'separator' });
  }
  menu.aboutToClose.connect(() => {
    button.setAttribute('aria-expanded', 'false');
    button.focus();
    // The command that was chosen runs after the menu has closed.
    setTimeout(() => menu.dispose(), 0);
  });
  button.setAttribute('aria-expanded', 'true');
  const { left, bottom } = button.getBoundingClientRect();
  menu.open(left, bottom);
}
