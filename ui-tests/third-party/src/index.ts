/** What another extension may add: a section of the sidebar, a badge on cells, a button and a note above the output of ranks. */
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import {
  IDistCellBadges,
  IDistGroups,
  IDistHeaderNotes,
  IDistOutputActions,
  IDistSidebarSections,
  type IRanksOutput
} from 'jupyter-dist';

/** How many groups there are. */
class Count extends Widget {
  constructor(groups: IDistGroups) {
    super();
    this._groups = groups;
    groups.changed.connect(this._draw, this);
    this._draw();
  }

  dispose(): void {
    this._groups.changed.disconnect(this._draw, this);
    super.dispose();
  }

  private _draw(): void {
    this.node.textContent = `${this._groups.groups.length} groups, counted by another extension`;
  }

  private readonly _groups: IDistGroups;
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist-third-party:plugin',
  description: 'Adds to the sidebar, to cells and to the output of ranks.',
  autoStart: true,
  requires: [IDistGroups],
  // Each of the four can be disabled by the user.
  optional: [IDistSidebarSections, IDistCellBadges, IDistOutputActions, IDistHeaderNotes],
  activate: (
    _: JupyterFrontEnd,
    groups: IDistGroups,
    sections: IDistSidebarSections | null,
    badges: IDistCellBadges | null,
    actions: IDistOutputActions | null,
    notes: IDistHeaderNotes | null
  ) => {
    sections?.add({ id: 'third-party:count', title: 'Count', createWidget: () => new Count(groups) });
    badges?.add({
      id: 'third-party:slow',
      describe: cell => (cell.getMetadata('slow') ? { text: 'slow', title: 'This cell takes its time' } : null)
    });
    notes?.add({
      id: 'third-party:long',
      create: () => {
        const node = document.createElement('div');
        return {
          node,
          isShown: false,
          update: ({ bundle }) => {
            node.textContent = `${bundle.items.length} items, noted by another extension`;
          }
        };
      },
      differences: ({ ranks }) => (ranks === '1' ? ['Rank 1 was alone'] : [])
    });
    actions?.add({
      id: 'third-party:lines',
      label: 'Count items',
      isVisible: ({ state }) => state === 'ok',
      execute: ({ group, ranks, items }: IRanksOutput) => {
        Notification.info(`${items.length} items of ranks ${ranks} of ${group.name}`, { autoClose: false });
      }
    });
  }
};

export default plugin;
