/** The extension's own icons; colours follow the theme by JupyterLab's icon classes. */
import { LabIcon } from '@jupyterlab/ui-components';

/** Four ranks on one bus. */
export const ranksIcon = new LabIcon({
  name: 'jupyter-dist:ranks',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <rect x="3" y="4" width="3" height="10" rx="1"/>
    <rect x="8" y="7" width="3" height="7" rx="1"/>
    <rect x="13" y="4" width="3" height="10" rx="1"/>
    <rect x="18" y="9" width="3" height="5" rx="1"/>
    <rect x="3" y="17" width="18" height="2" rx="1"/>
  </g>
</svg>`
});
