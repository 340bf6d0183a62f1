import type { AnyStateMachine } from 'xstate'
import { layoutOf } from './layout/layout.ts'
import { outlineOf } from './outline.ts'
import { svgOf } from './svg/svg.ts'

/**
 * Draws a chart as SVG that needs nothing else, in light and in dark surroundings. Each state is a `<g data-state>` with its id,
 * each transition a `<g data-transition>` with its name (`transitionName`); the classes `active`, `visited`, `taken` and
 * `uncovered` light them. Whatever is said of a chart is text in it, never markup. The same chart gives the same drawing.
 * Rejects with TypeError without elkjs, an optional peer.
 */
export async function drawChart(machine: AnyStateMachine): Promise<string> {
  const outline = outlineOf(machine)
  return svgOf(outline, await layoutOf(outline))
}
