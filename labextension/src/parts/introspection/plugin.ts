/** Completions, Shift+Tab and Contextual Help of cells that run on ranks, answered by ranks. */
import { completerPlugin } from './completer';
import { contextualHelpPlugin } from './contextualhelp';
import { inspectionPlugin } from './inspection';

export default [completerPlugin, inspectionPlugin, contextualHelpPlugin];
