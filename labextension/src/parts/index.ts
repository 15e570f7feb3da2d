/** The parts of the page. Made by `make generate` from the folders beside this file. */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import checks from './checks/plugin';
import curves from './curves/plugin';
import debugging from './debugging/plugin';
import drift from './drift/plugin';
import groupconsole from './groupconsole/plugin';
import hangs from './hangs/plugin';
import introspection from './introspection/plugin';
import ipywidgets from './ipywidgets/plugin';
import logpanel from './logpanel/plugin';
import longcells from './longcells/plugin';
import nodewarnings from './nodewarnings/plugin';
import parking from './parking/plugin';
import peek from './peek/plugin';
import profile from './profile/plugin';
import resizing from './resizing/plugin';
import saves from './saves/plugin';
import script from './script/plugin';
import slow from './slow/plugin';
import statusbar from './statusbar/plugin';
import timeline from './timeline/plugin';
import undo from './undo/plugin';
import variables from './variables/plugin';

export const partPlugins: JupyterFrontEndPlugin<unknown>[] = [
  checks,
  curves,
  debugging,
  drift,
  groupconsole,
  hangs,
  introspection,
  ipywidgets,
  logpanel,
  longcells,
  nodewarnings,
  parking,
  peek,
  profile,
  resizing,
  saves,
  script,
  slow,
  statusbar,
  timeline,
  undo,
  variables
].flat();
