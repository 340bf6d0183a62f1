import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'

/** The content and behaviour of a list. */
interface VirtualListProps<Item> {
  /** For screen readers. */
  readonly label: string
  readonly items: readonly Item[]
  readonly keyOf: (item: Item) => string
  /** In pixels. */
  readonly heightOf: (item: Item) => number
  readonly row: (item: Item) => ComponentChildren
  /** The key of the chosen row. */
  readonly activeKey: string | undefined
  readonly choose: (item: Item) => void
  /** Called after a click or Enter on a row. */
  readonly open?: () => void
  /** Whether a row is a heading, which the keys skip. */
  readonly isHeading?: (item: Item) => boolean
  /** Whether the list stays scrolled to its end. */
  readonly follows?: boolean
  /** Stays above the rows, and scrolls sideways with them. */
  readonly head?: ComponentChildren
  /** The minimum width of rows, in pixels. */
  readonly minWidth?: number
  /** Replaces an empty list. */
  readonly empty: ComponentChildren
}

/**
 * A list that renders only visible rows, so that 10,000 rows cost as much as 30. Arrow keys, j and k, Home and End move
 * the choice. Rows inserted above the visible ones do not move them.
 */
export function VirtualList<Item>(props: VirtualListProps<Item>) {
  const { items, keyOf, heightOf, row, activeKey, choose, isHeading = () => false, follows = false } = props
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 600 })
  const tops = useMemo(() => places(items, heightOf), [items])
  const anchor = useRef<{ key: string; offset: number; atEnd: boolean }>(undefined)
  const total = tops[items.length] ?? 0
  const [first, last] = visible(tops, view.top, view.height)
  const activeIndex = activeKey === undefined ? -1 : items.findIndex(item => keyOf(item) === activeKey)

  const look = () => {
    const { current } = box
    if (current)
      setView(view =>
        view.top === current.scrollTop && view.height === current.clientHeight
          ? view
          : { top: current.scrollTop, height: current.clientHeight }
      )
  }
  useLayoutEffect(() => {
    const watch = new ResizeObserver(look)
    if (box.current) watch.observe(box.current)
    look()
    return () => watch.disconnect()
  }, [items.length === 0])
  useLayoutEffect(() => {
    const { current } = box
    const { current: kept } = anchor
    if (!current || !kept) return
    if (follows && kept.atEnd) current.scrollTop = total
    else if (!follows && current.scrollTop > 0) {
      const index = items.findIndex(item => keyOf(item) === kept.key)
      const place = tops[index]
      if (index >= 0 && place !== undefined && place + kept.offset !== current.scrollTop)
        current.scrollTop = place + kept.offset
    }
    look()
  }, [items])
  useLayoutEffect(() => {
    const { current } = box
    const top = items[first]
    if (current && top !== undefined)
      anchor.current = {
        key: keyOf(top),
        offset: current.scrollTop - (tops[first] ?? 0),
        atEnd: current.scrollTop + current.clientHeight >= total - 40
      }
    else anchor.current = { key: '', offset: 0, atEnd: true }
  })

  const show = (index: number) => {
    const { current } = box
    const top = tops[index]
    const bottom = tops[index + 1]
    if (!current || top === undefined || bottom === undefined) return
    if (top < current.scrollTop) current.scrollTop = top
    else if (bottom > current.scrollTop + current.clientHeight) current.scrollTop = bottom - current.clientHeight
  }
  const press = (event: KeyboardEvent) => {
    const move =
      event.ctrlKey || event.metaKey || event.altKey
        ? undefined
        : listMove(event.key, { active: activeIndex, count: items.length, page: Math.max(1, last - first - 1) })
    if (event.key === 'Enter' && activeIndex >= 0) return props.open?.()
    if (!move) return
    event.preventDefault()
    let index = move.to
    let item = items[index]
    while (item !== undefined && isHeading(item)) item = items[(index += move.step)]
    if (item === undefined) return
    choose(item)
    show(index)
  }

  if (items.length === 0) return <div class="empty">{props.empty}</div>
  const idOf = (index: number) => `${props.label}-${index}`.replaceAll(/\W+/g, '-')
  return (
    <div
      ref={box}
      class="rows"
      role="listbox"
      aria-label={props.label}
      tabIndex={0}
      onScroll={look}
      onKeyDown={press}
      aria-activedescendant={activeIndex >= first && activeIndex < last ? idOf(activeIndex) : undefined}
    >
      {props.head}
      <div class="rows-all" role="presentation" style={{ height: `${total}px`, minWidth: `${props.minWidth ?? 0}px` }}>
        {items.slice(first, last).map((item, i) => {
          const index = first + i
          const heads = isHeading(item)
          return (
            <div
              key={keyOf(item)}
              id={idOf(index)}
              role={heads ? 'presentation' : 'option'}
              class={heads ? 'row heading' : 'row'}
              aria-selected={heads ? undefined : index === activeIndex}
              aria-setsize={heads ? undefined : items.length}
              aria-posinset={heads ? undefined : index + 1}
              style={{ top: `${tops[index]}px`, height: `${heightOf(item)}px` }}
              onClick={() => (choose(item), props.open?.())}
            >
              {row(item)}
            </div>
          )
        })}
      </div>
    </div>
  )
}

/** The number of extra rows on each side, so that fast scrolling shows no gaps. */
const BEYOND = 8

/** The top of each row in pixels, and the end of the last one. */
function places<Item>(items: readonly Item[], heightOf: (item: Item) => number): Float64Array {
  const tops = new Float64Array(items.length + 1)
  let top = 0
  for (const [index, item] of items.entries()) {
    tops[index] = top
    top += heightOf(item)
  }
  tops[items.length] = top
  return tops
}

/** The visible rows, as a half-open range. */
function visible(tops: Float64Array, top: number, height: number): [from: number, to: number] {
  const count = tops.length - 1
  return [Math.max(0, rowAt(tops, top) - BEYOND), Math.min(count, rowAt(tops, top + height) + 1 + BEYOND)]
}

/** The last row that begins at or above a position. */
function rowAt(tops: Float64Array, place: number): number {
  let low = 0
  let high = tops.length - 1
  while (low + 1 < high) {
    const middle = (low + high) >> 1
    if ((tops[middle] ?? 0) <= place) low = middle
    else high = middle
  }
  return low
}

/** The position in a list. */
interface ListPlace {
  /** The chosen row; -1 for none. */
  readonly active: number
  readonly count: number
  /** The number of visible rows. */
  readonly page: number
}

/** The row to move to, and the direction in which headings are skipped. */
interface ListMove {
  readonly to: number
  readonly step: 1 | -1
}

/** The move for a key in a list; `undefined` for other keys. */
function listMove(key: string, { active, count, page }: ListPlace): ListMove | undefined {
  switch (key) {
    case 'ArrowDown':
    case 'j':
      return { to: active + 1, step: 1 }
    case 'ArrowUp':
    case 'k':
      return active < 0 ? { to: 0, step: 1 } : { to: active - 1, step: -1 }
    case 'Home':
      return { to: 0, step: 1 }
    case 'End':
      return { to: count - 1, step: -1 }
    case 'PageDown':
      return { to: Math.min(count - 1, active + page), step: -1 }
    case 'PageUp':
      return { to: Math.max(0, active - page), step: 1 }
    default:
      return undefined
  }
}
