import type { AnyStateMachine } from 'xstate'
import { layoutOf } from './layout/layout.ts'
import { outlineOf } from './outline.ts'
import { svgOf } from './svg/svg.ts'

/**
 * Draws a chart as a self-contained SVG, with a light and a dark theme. Each state is a `<g data-state>` with its id, and each transition a
 * `<g data-transition>` with its name (`transitionName`). The classes `active`, `visited`, `taken` and `uncovered` highlight them. Texts of
 * the chart are escaped. The same chart gives the same drawing. Rejects with TypeError without elkjs, an optional peer.
 */
export async function drawChart(machine: AnyStateMachine): Promise<string> {
  const outline = outlineOf(machine)
  return svgOf(outline, await layoutOf(outline))
}
