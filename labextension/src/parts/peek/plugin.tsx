import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import React from 'react';
import { resolveTarget } from '../../model/targets/target';
import { CommandIDs, IDistGroups, IDistService, IDistVariableSections } from '../../tokens';
import { lazily } from '../../widgets/base/errornote';
import { WatchModel } from './watch';

const Watch = lazily(async () => (await import(/* webpackChunkName: "watch" */ './watchview')).Watch);
const COMMAND = 'jupyter-dist:watch-name';

/** Values of running cells, in the panel of variables, and the item of a cell's menu that watches the name at its cursor. */
const peekPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-dist:peek',
  description: 'Shows values of ranks while their cell runs.',
  autoStart: true,
  requires: [IDistService, IDistGroups],
  optional: [IDistVariableSections, INotebookTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    groups: IDistGroups,
    sections: IDistVariableSections | null,
    notebooks: INotebookTracker | null,
    translator: ITranslator | null
  ): void => {
    if (!sections) {
      return; // the panel that shows the values
    }
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const models = new Map<string, WatchModel>();
    const modelOf = (group: string): WatchModel => {
      const model = models.get(group) ?? new WatchModel(service, groups, group);
      models.set(group, model);
      return model;
    };
    sections.add({
      id: peekPlugin.id,
      render: (group, isVisible) => <Watch model={modelOf(group)} {...{ isVisible, trans }} />
    });

    const group = (): string | undefined => {
      const { model, activeCell } = notebooks?.currentWidget?.content ?? {};
      const target = model && activeCell ? resolveTarget(model, activeCell.model) : null;
      return target ? groups.find(target.group)?.id : undefined;
    };
    const name = (): string => nameAt(notebooks?.activeCell?.editor ?? null);
    app.commands.addCommand(COMMAND, {
      label: () => (name() ? trans.__('Watch %1 on Ranks', name()) : trans.__('Watch Values on Ranks')),
      caption: trans.__('Read it on all ranks, also while a cell runs'),
      describedBy: { args: { type: 'object', properties: {} } },
      isVisible: () => group() !== undefined,
      execute: () => {
        const found = group();
        if (found) {
          modelOf(found).add(name());
        }
        return app.commands.execute(CommandIDs.openVariables, { group: found });
      }
    });
    app.contextMenu.addItem({ command: COMMAND, selector: '.jp-Notebook .jp-CodeCell', rank: 15.3 });
  }
};

/** The selected text, or the name around the cursor, with the names before its dots; empty if it is no name. */
function nameAt(editor: CodeEditor.IEditor | null): string {
  if (!editor) {
    return '';
  }
  const { start, end } = editor.getSelection();
  const source = editor.model.sharedModel.getSource();
  const [from, to] = [editor.getOffsetAt(start), editor.getOffsetAt(end)].sort((a, b) => a - b);
  const around = /[\w.]*$/.exec(source.slice(0, from))![0] + /^\w*/.exec(source.slice(to))![0];
  const found = source.slice(from, to) || around;
  return /^[A-Za-z_][\w.]*(\[['"\w]+\])*$/.test(found) ? found : '';
}

export default peekPlugin;
