// Conversations, kept in the browser's own database (pictures are too large for localStorage).

const NAME = "trunkline";
const STORE = "conversations";

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open();
  try {
    return await new Promise<T>((resolve, reject) => {
      const request = work(database.transaction(STORE, mode).objectStore(STORE));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } finally {
    database.close();
  }
}

export const all = <T>() => run<T[]>("readonly", (store) => store.getAll());
export const put = (value: unknown) => run("readwrite", (store) => store.put(value));
export const remove = (id: string) => run("readwrite", (store) => store.delete(id));
