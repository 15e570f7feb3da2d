import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { Contributions } from '../../model/contributions';
import { WaitingModel } from '../../model/executions/waiting';
import { ILiveOutputs, liveOutputsOf } from '../../model/outputs/liveoutputs';
import { PART_MIME } from '../../model/outputs/portable';
import { getNotebookTarget } from '../../model/targets/target';
import { RANKS_MIME } from '../../services/protocol';
import {
  CommandIDs,
  IDistExecutions,
  IDistGroups,
  IDistHeaderNotes,
  IDistOutputActions,
  IDistOutputTabs,
  IDistService,
  IHeaderNotes,
  INoteContext,
  IOutputAction,
  IOutputTabs
} from '../../tokens';
import { stopOf } from '../../widgets/rankoutput/header/stops';
import { notesOf } from '../../widgets/rankoutput/notes/ranknotes';
import type { IRanksRendererOptions } from '../../widgets/rankoutput/options';
import { PartRenderer } from '../../widgets/rankoutput/parts';
import { RanksRenderer } from '../../widgets/rankoutput/renderer';
import { pathOf } from '../../widgets/states/codelines';
import { panelOf, showFile, showLine } from './showcell';

const ID = 'jupyter-dist:rank-output';
const DEFAULT_LINES = 30;
const SHORT_MS = 5000;

/** Its own plugin, because a plugin provides one token. */
export const headerNotesPlugin: JupyterFrontEndPlugin<IDistHeaderNotes> = {
  id: 'jupyter-dist:header-notes',
  description: 'Keeps the notes of parts and other extensions in the header of the output of ranks.',
  autoStart: true,
  provides: IDistHeaderNotes,
  activate: () => new Contributions<IHeaderNotes>()
};

/** The same. */
export const outputTabsPlugin: JupyterFrontEndPlugin<IDistOutputTabs> = {
  id: 'jupyter-dist:output-tabs',
  description: 'Keeps the tabs of parts and other extensions in the output of ranks.',
  autoStart: true,
  provides: IDistOutputTabs,
  activate: () => new Contributions<IOutputTabs>()
};

/** A plugin, not a mimeExtension, because those get no services. */
export const rankOutputPlugin: JupyterFrontEndPlugin<IDistOutputActions> = {
  id: ID,
  description: 'Renders the output of ranks: folded, and rank by rank.',
  autoStart: true,
  requires: [IDistService, IDistExecutions, IDistGroups, IRenderMimeRegistry, IDistHeaderNotes, IDistOutputTabs],
  optional: [INotebookTracker, ITranslator, ISettingRegistry],
  provides: IDistOutputActions,
  activate: (
    app: JupyterFrontEnd,
    service: IDistService,
    executions: IDistExecutions,
    groups: IDistGroups,
    rendermime: IRenderMimeRegistry,
    headerNotes: IDistHeaderNotes,
    outputTabs: IDistOutputTabs,
    tracker: INotebookTracker | null,
    translator: ITranslator | null,
    settings: ISettingRegistry | null
  ): IDistOutputActions => {
    const actions = new Contributions<IOutputAction>();
    const look: ILook = { condenses: true, headers: false };
    void followSettings(settings, look);
    const trans = (translator ?? nullTranslator).load('jupyter_dist');
    const waiting = new WaitingModel(groups, service);
    const acts = actsOf(app, service);
    const noteContext = noteContextOf(app, service, tracker, trans);
    const add = (registry: IRenderMimeRegistry, context: NotebookPanel['context'] | null): void => {
      // Opened when the first output is shown: the plugins of parts are active then.
      let live: ILiveOutputs | null = null;
      registry.addFactory(
        {
          safe: true,
          mimeTypes: [RANKS_MIME],
          defaultRank: 10,
          createRenderer: () =>
            new RanksRenderer({
              rendermime: registry,
              live: (live ??= liveOutputsOf(registry, context)),
              executions,
              actions,
              headerNotes,
              outputTabs,
              trans,
              isConnected: () => groups.connected,
              waitsFor: execution => waiting.of(execution),
              isBehindOwn: execution => waiting.isBehindOwn(execution),
              stopOf: ({ id, group }) => stopOf(groups.find(group), id),
              notesOf: ({ id, group }) => notesOf(groups.find(group), id),
              groups,
              groupOf: node => groupOf(tracker, node),
              ...acts,
              ...noteContext,
              condenses: () => look.condenses,
              showsHeaders: () => look.headers
            })
        },
        10
      );
      addParts(registry);
    };
    add(rendermime, null);
    followRegistries(app, tracker, add);
    return actions;
  }
};

/** Give each notebook its own registry, shared by its views: nested outputs need the notebook's resolver and widget manager. */
function followRegistries(
  app: JupyterFrontEnd,
  tracker: INotebookTracker | null,
  add: (registry: IRenderMimeRegistry, context: NotebookPanel['context']) => void
): void {
  const known = new WeakSet<IRenderMimeRegistry>();
  const open = ({ content, context }: NotebookPanel): void => {
    if (!known.has(content.rendermime)) {
      known.add(content.rendermime);
      add(content.rendermime, context);
    }
  };
  tracker?.forEach(open);
  tracker?.widgetAdded.connect((_, panel) => open(panel), app);
}

/** What the buttons in a cell's output do. */
function actsOf(
  { commands }: JupyterFrontEnd,
  service: IDistService
): Pick<IRanksRendererOptions, 'openLog' | 'killRank' | 'replace' | 'answer'> {
  return {
    openLog: (group, rank) => void commands.execute(CommandIDs.openLog, { group, rank }),
    killRank: (group, rank) => void commands.execute(CommandIDs.killRank, { group, rank }),
    replace: group => void commands.execute(CommandIDs.replace, { group }),
    answer: (group, execution, body) => service.answerInput(group, execution, body)
  };
}

/** What the notes of parts may do. */
function noteContextOf(
  app: JupyterFrontEnd,
  service: IDistService,
  tracker: INotebookTracker | null,
  trans: TranslationBundle
): Omit<INoteContext, 'redraw'> {
  return {
    openLine: (group, execution, place) => {
      const path = pathOf(place);
      const [opened, missing] =
        path === null
          ? [
              showLine(app, tracker, () => service.executions(group), execution, place),
              trans.__('The cell with %1 is not there any more.', place.code)
            ]
          : [showFile(app, path, place), trans.__('The file %1 is not there any more.', path)];
      // Without a time limit, JupyterLab has it in its list only.
      const tell = (): string => Notification.info(missing, { autoClose: SHORT_MS });
      void opened.catch(() => false).then(isFound => isFound || tell());
    }
  };
}

/** The group that the notebook around an element runs on; null: its kernel chooses one; undefined: there is no notebook. */
function groupOf(tracker: INotebookTracker | null, element: HTMLElement): string | null | undefined {
  const model = panelOf(tracker, element)?.content.model;
  return model ? (getNotebookTarget(model)?.group ?? null) : undefined;
}

/** Add renderers for the parts of ranks' output that are separate outputs. */
function addParts(registry: IRenderMimeRegistry): void {
  const createRenderer = (): PartRenderer => new PartRenderer(registry);
  registry.addFactory({ safe: true, mimeTypes: [PART_MIME], defaultRank: 10, createRenderer }, 10);
}

/** How outputs look, by the settings. */
interface ILook {
  condenses: boolean;
  headers: boolean;
}

/** Sets the maximum height of outputs, for the style sheet, and how they look. */
async function followSettings(registry: ISettingRegistry | null, look: ILook): Promise<void> {
  try {
    const settings = await registry?.load(ID);
    const read = (): void => {
      const lines = Number(settings?.composite.maxLines ?? DEFAULT_LINES);
      const height = `calc(${lines} * var(--jp-code-font-size) * var(--jp-code-line-height))`;
      document.documentElement.style.setProperty('--jpd-output-max-height', lines > 0 ? height : 'none');
      look.condenses = settings?.composite.condenseNumbers !== false;
      look.headers = settings?.composite.headers === 'always';
    };
    settings?.changed.connect(read);
    read();
  } catch (reason) {
    console.warn('jupyter_dist: could not read the output settings', reason);
  }
}
