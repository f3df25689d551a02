// Rows of a test's database, read and changed without the rules of the program.
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { Services } from '../../../src/server/domain/context.ts'
import type { Tables } from '../../../src/server/store/engine/tables.ts'

type Stored = Pick<Services, 'store'>
type Row<Table extends keyof Tables> = Selectable<Tables[Table]>

/** SQLite and PostgreSQL limit the parameters of a statement. */
const INSERT_MAX = 500

/** Those whose columns have these values. */
export async function readRows<Table extends keyof Tables>(
  { store }: Stored,
  table: Table,
  where: Partial<Row<Table>> = {},
  orderBy?: keyof Tables[Table],
): Promise<Row<Table>[]> {
  const query = store.db.selectFrom(table as 'users').selectAll()
  const found = query.where((row) => row.and(where as object))
  return (await (orderBy ? found.orderBy(orderBy as never) : found).execute()) as never
}

export const setRows = <Table extends keyof Tables>(
  { store }: Stored,
  table: Table,
  values: Updateable<Tables[Table]>,
  where: Partial<Row<Table>> = {},
) =>
  store.transaction((db) => {
    const query = db.updateTable(table as 'users').set(values as object)
    return query.where((row) => row.and(where as object)).execute()
  })

export const addRows = <Table extends keyof Tables>(
  { store }: Stored,
  table: Table,
  ...rows: Insertable<Tables[Table]>[]
) =>
  store.transaction(async (db) => {
    for (let start = 0; start < rows.length; start += INSERT_MAX) {
      const some = rows.slice(start, start + INSERT_MAX)
      await db
        .insertInto(table)
        .values(some as never)
        .execute()
    }
  })
