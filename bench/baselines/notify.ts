// What the database and Node need for a revocation at least: a durable commit of one row that notifies
// another process, which notifies this one. A message makes a process with the role `writer` do it a number
// of times, one after the other.
import pg from 'pg'

const { url, role } = JSON.parse(process.argv[2] as string) as { url: string; role: 'writer' | 'listener' }
const THERE = 'bench_there'
const BACK = 'bench_back'
const TABLE = `create table if not exists bench_notify (id integer primary key, n bigint not null);
  insert into bench_notify values (1, 0) on conflict do nothing`
const WRITE = {
  name: 'write',
  text: `with written as (update bench_notify set n = n + 1 where id = 1 returning n)
    select pg_notify('${THERE}', cast(n as text)) from written`,
}
/** Not durable, like the acknowledgment of a revocation. */
const REPLY = {
  name: 'reply',
  text: `select pg_notify('${BACK}', $1) where set_config('synchronous_commit', 'off', true) = 'off'`,
}

const client = new pg.Client(url)
await client.connect()
if (role === 'listener') {
  client.on('notification', ({ payload }) => void client.query({ ...REPLY, values: [payload] }))
  await client.query(`listen ${THERE}`)
} else {
  // Notifications come on a connection of their own, like those of a node.
  const listener = new pg.Client(url)
  await listener.connect()
  await listener.query(`listen ${BACK}`)
  await client.query(TABLE)
  process.on('message', async ({ count }: { count: number }) => {
    const times: number[] = []
    while (times.length < count) {
      const began = performance.now()
      const replied = new Promise((resolve) => listener.once('notification', resolve))
      await client.query(WRITE)
      await replied
      times.push(performance.now() - began)
    }
    process.send?.({ times })
  })
}
process.once('disconnect', () => process.exit())
process.send?.({})
