import { revalidatePath } from 'next/cache'

const names = []

async function addName(form) {
  'use server'
  names.push(form.get('name'))
  revalidatePath('/')
}

export default function Page() {
  return (
    <form action={addName}>
      <p>first</p>
      <input name="name" />
      <button type="submit">Add</button>
      <output>{names.join()}</output>
    </form>
  )
}
