import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { places, visible } from './frame/row-places.ts'
import { listMove } from './list-keys.ts'

/** What a list shows, and how. */
export interface VirtualListProps<Item> {
  /** For those who hear the page. */
  readonly label: string
  readonly items: readonly Item[]
  readonly keyOf: (item: Item) => string
  /** In pixels. */
  readonly heightOf: (item: Item) => number
  readonly row: (item: Item) => ComponentChildren
  /** The key of the row that is chosen. */
  readonly activeKey: string | undefined
  readonly choose: (item: Item) => void
  /** Rows that head others are passed over by the keys. */
  readonly isHeading?: (item: Item) => boolean
  /** Stays at its end while that is in sight. */
  readonly follows?: boolean
  /** Stays above the rows, and moves sideways with them. */
  readonly head?: ComponentChildren
  /** How wide the rows are at least, in pixels. */
  readonly minWidth?: number
  /** Stands in for rows where there are none. */
  readonly empty: ComponentChildren
}

/**
 * A list of which only the rows in sight exist, so that ten thousand cost as much as thirty. Arrows, j and k, Home and
 * End move the choice; rows that come in above those in sight do not move them.
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
    if (current) setView(view => (view.top === current.scrollTop && view.height === current.clientHeight ? view : { top: current.scrollTop, height: current.clientHeight }))
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
      if (index >= 0 && place !== undefined && place + kept.offset !== current.scrollTop) current.scrollTop = place + kept.offset
    }
    look()
  }, [items])
  useLayoutEffect(() => {
    const { current } = box
    const top = items[first]
    if (current && top !== undefined) anchor.current = { key: keyOf(top), offset: current.scrollTop - (tops[first] ?? 0), atEnd: current.scrollTop + current.clientHeight >= total - 40 }
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
    const move = event.ctrlKey || event.metaKey || event.altKey ? undefined : listMove(event.key, { active: activeIndex, count: items.length, page: Math.max(1, last - first - 1) })
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
    <div ref={box} class="rows" role="listbox" aria-label={props.label} tabIndex={0} onScroll={look} onKeyDown={press}
      aria-activedescendant={activeIndex >= first && activeIndex < last ? idOf(activeIndex) : undefined}>
      {props.head}
      <div class="rows-all" role="presentation" style={{ height: `${total}px`, minWidth: `${props.minWidth ?? 0}px` }}>
        {items.slice(first, last).map((item, i) => {
          const index = first + i
          const heads = isHeading(item)
          return (
            <div key={keyOf(item)} id={idOf(index)} role={heads ? 'presentation' : 'option'} class={heads ? 'row heading' : 'row'}
              aria-selected={heads ? undefined : index === activeIndex} aria-setsize={heads ? undefined : items.length} aria-posinset={heads ? undefined : index + 1}
              style={{ top: `${tops[index]}px`, height: `${heightOf(item)}px` }} onClick={() => choose(item)}>
              {row(item)}
            </div>
          )
        })}
      </div>
    </div>
  )
}
