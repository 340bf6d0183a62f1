import { sumOf, DamagedRow } from '../../rows/damage.ts'
import type { Database, Statement, Value } from '../driver.ts'

type Cells = Readonly<Record<string, Value>>

/**
 * A table whose rows have a checksum over all cells in the column `sum`, written with every row and verified on every read. A row that
 * differs from what was written throws {@link DamagedRow} and is never returned.
 */
export class Table<Row extends { readonly [Column in keyof Row]: Value }> {
  readonly #database: Database
  readonly #name: string
  readonly #columns: readonly (keyof Row & string)[]
  readonly #insert: Statement

  constructor(database: Database, name: string, columns: readonly (keyof Row & string)[]) {
    this.#database = database
    this.#name = name
    this.#columns = columns
    this.#insert = database.prepare(
      `INSERT INTO ${name} (${columns.join(', ')}, sum) VALUES (${columns.map(() => '?').join(', ')}, ?)`
    )
  }

  /** Adds a row with a new key. */
  insert(row: Row): void {
    this.insertCells(row, false)
  }

  /** Adds a row from cells, which may have more columns. A damaged one is written as such. */
  insertCells(row: Cells, isDamaged: boolean): void {
    const cells = this.#columns.map(column => row[column] as Value)
    this.#insert.run(...cells, sumOf(cells) + Number(isDamaged))
  }

  /** Whether a row has the checksum of its cells. */
  isIntact(row: Cells): boolean {
    return row.sum === sumOf(this.#columns.map(column => row[column] as Value))
  }

  /** Prepares an update of `columns`, and of the sum, in the row with the cells of `key`. */
  updating(columns: readonly (keyof Row & string)[], key: readonly (keyof Row & string)[]): (row: Row) => void {
    const changes = columns.map(column => `${column} = ?`)
    const statement = this.#database.prepare(
      `UPDATE ${this.#name} SET ${changes.join(', ')}, sum = ? WHERE ${key.map(column => `${column} = ?`).join(' AND ')}`
    )
    return row =>
      void statement.run(
        ...columns.map(column => row[column]),
        sumOf(this.#cellsOf(row)),
        ...key.map(column => row[column])
      )
  }

  /** Prepares a read of the rows with the given cells in the columns `by`; `more` is SQL that follows, such as an order. */
  reading(by: readonly (keyof Row & string)[], more = ''): Reading<Row> {
    const condition = by.map(column => `${column} = ?`).join(' AND ')
    const statement = this.#database.prepare(
      `SELECT ${this.#columns.join(', ')}, sum FROM ${this.#name} WHERE ${condition} ${more}`
    )
    return {
      one: (...values) => {
        const row = this.#safely(() => statement.get(...values))
        return row && this.#verified(row)
      },
      all: (...values) => this.#safely(() => statement.all(...values)).map(row => this.#verified(row))
    }
  }

  #cellsOf(row: Row): Value[] {
    return this.#columns.map(column => row[column])
  }

  /** Also detects a damaged index that refers to a wrong row: SQLite takes the key from the index, and the sum covers the row's own. */
  #verified(cells: Cells): Row {
    if (!this.isIntact(cells)) throw new DamagedRow(this.#name)
    return cells as unknown as Row
  }

  /** A cell may be so damaged that the driver cannot convert it. */
  #safely<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      /* c8 ignore next -- only with node:sqlite, which Node 20 does not have */
      if (error instanceof RangeError) throw new DamagedRow(this.#name, { cause: error })
      throw error
    }
  }
}

/** A prepared read. Both methods throw DamagedRow for a damaged row. */
export interface Reading<Row> {
  /** The first row, if there is one. */
  one(...values: Value[]): Row | undefined
  all(...values: Value[]): Row[]
}
