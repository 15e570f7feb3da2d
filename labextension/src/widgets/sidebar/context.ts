/** The context of the sidebar's components. */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ISignal } from '@lumino/signaling';
import React from 'react';
import type { DevicesModel } from '../../model/groups/devicemonitor';
import type { GroupMonitors } from '../../model/groups/monitor';
import type { IGroup } from '../../services/protocol';
import type { IDistGroups, IDistService, IDistSidebarSections, IClock } from '../../tokens';

export interface IRepairButton {
  readonly label: string;
  readonly title: string;
  /** Whether it is there without a note, and beside the button that replaces dead ranks. */
  readonly standsAlone: boolean;
  run(): void;
}

/** The actions on a group; destructive ones ask first. */
export interface IGroupActions {
  interrupt(group: IGroup, ranks?: string): void;
  restart(group: IGroup): void;
  replace(group: IGroup): void;
  /** What may be left to do after ranks were replaced, or it has ended. */
  repairs(group: IGroup): readonly IRepairButton[];
  kill(group: IGroup, rank: number): void;
  reform(group: IGroup): void;
  startAgain(group: IGroup): void;
  openLog(group: IGroup, rank: number): void;
  /** Open the menu with all other actions below its button. */
  openMenu(group: IGroup, button: HTMLElement): void;
}

export interface ISidebarOptions {
  /** Preload the default environment when the sidebar is opened. */
  readonly warm: boolean;
  /** The initial number of CPU ranks in the form. */
  readonly ranks: number;
  /** Draw the memory of groups. */
  readonly charts: boolean;
}

export const DEFAULT_OPTIONS: ISidebarOptions = { warm: true, ranks: 2, charts: true };

export interface ISidebarContext {
  readonly service: IDistService;
  readonly groups: IDistGroups;
  readonly devices: DevicesModel;
  readonly monitors: GroupMonitors;
  readonly clock: IClock;
  readonly actions: IGroupActions;
  /** What other extensions add. */
  readonly sections: IDistSidebarSections;
  readonly trans: TranslationBundle;
  /** Emitted when colors must be read again. */
  readonly themeChanged: ISignal<unknown, unknown> | null;
  /** The path of the current notebook, if any. */
  readonly notebook: () => string | null;
}

export const SidebarContext = React.createContext<ISidebarContext | null>(null);

export function useSidebar(): ISidebarContext {
  const context = React.useContext(SidebarContext);
  if (!context) {
    throw new Error('A sidebar component was rendered outside the sidebar.');
  }
  return context;
}
