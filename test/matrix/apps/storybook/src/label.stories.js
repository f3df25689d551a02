import { Label } from './label.jsx'

export default { title: 'Label', component: Label }
export const Plain = {}
