// Conversations, kept in the browser's own database (pictures are too large for localStorage).

const NAME = "trunkline";
const STORE = "conversations";

let opened: Promise<IDBDatabase> | undefined;

/** The database, opened once: what is written goes off in the same moment, however soon the page is left. */
function open(): Promise<IDBDatabase> {
  return (opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => {
      request.result.onclose = () => (opened = undefined);
      resolve(request.result);
    };
    request.onerror = () => {
      opened = undefined;
      reject(request.error);
    };
  }));
}

async function run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open();
  return new Promise<T>((resolve, reject) => {
    const transaction = database.transaction(STORE, mode);
    const request = work(transaction.objectStore(STORE));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = () => reject(transaction.error ?? request.error);
    transaction.commit();
  });
}

export const all = <T>() => run<T[]>("readonly", (store) => store.getAll());
export const put = (value: unknown) => run("readwrite", (store) => store.put(value));
export const remove = (id: string) => run("readwrite", (store) => store.delete(id));
