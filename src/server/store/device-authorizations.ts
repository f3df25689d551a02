// Requests of devices for an API key, stored by the hash of their device code.
import type { Selectable } from 'kysely'
import { insertUnlessExists } from './engine/rows.ts'
import type { Db, Tx } from './engine/store.ts'
import type { Tables } from './engine/tables.ts'

export type DeviceRow = Selectable<Tables['device_authorizations']>

/** Returns false if another row has the user code. */
export const insertDevice = (db: Tx, row: DeviceRow): Promise<boolean> =>
  insertUnlessExists(db, 'device_authorizations', row, ['user_code'])

export const findDevice = (db: Db, hash: string): Promise<DeviceRow | undefined> =>
  db.selectFrom('device_authorizations').selectAll().where('hash', '=', hash).executeTakeFirst()

export const findDeviceByUserCode = (db: Db, userCode: string): Promise<DeviceRow | undefined> =>
  db.selectFrom('device_authorizations').selectAll().where('user_code', '=', userCode).executeTakeFirst()

/** Reads and locks the row; an update without change locks it on both engines. */
export const lockDevice = (
  db: Tx,
  by: { hash: string } | { user_code: string },
): Promise<DeviceRow | undefined> => {
  const [[column, value]] = Object.entries(by) as [['hash' | 'user_code', string]]
  return db
    .updateTable('device_authorizations')
    .set((row) => ({ state: row.ref('state') }))
    .where(column, '=', value)
    .returningAll()
    .executeTakeFirst()
}

export async function updateDevice(db: Tx, hash: string, change: Partial<DeviceRow>): Promise<void> {
  await db.updateTable('device_authorizations').set(change).where('hash', '=', hash).execute()
}

/** Whether at least `count` rows have not expired. */
export async function hasUnexpiredDevices(db: Db, now: number, count: number): Promise<boolean> {
  const last = await db
    .selectFrom('device_authorizations')
    .select('expires_at')
    .where('expires_at', '>', now)
    .orderBy('expires_at')
    .limit(1)
    .offset(count - 1)
    .executeTakeFirst()
  return last !== undefined
}
