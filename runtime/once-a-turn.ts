import { atTurnEnd } from './turn-end.ts'

/**
 * Makes something of an object once for all who ask in the same turn of the event loop, as the subscribers of one event
 * do, and keeps nothing longer than that.
 */
export function onceATurn<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  let made = new Map<Key, Value>()
  return key => {
    if (made.size === 0) atTurnEnd(() => void (made = new Map()))
    const known = made.get(key)
    if (known !== undefined) return known
    const value = make(key)
    made.set(key, value)
    return value
  }
}
